package lint

import (
	"fmt"
	"slices"
	"strings"
)

const activeDirectory = "ActiveDirectory"

// plugins are the entries of CmsPlugins that are text.
func (d *document) plugins() []*node {
	return d.root.member("CmsPlugins").each(aString)
}

func isActiveDirectory(plugin *node) bool {
	return strings.EqualFold(strings.TrimSpace(plugin.text), activeDirectory)
}

func noActiveDirectoryPlugin(d *document, found report) {
	list := d.root.member("CmsPlugins")
	if list != nil && list.mistyped || slices.ContainsFunc(d.plugins(), isActiveDirectory) {
		return
	}
	const fix = "set CmsPlugins to a list with the one entry ActiveDirectory"
	if list == nil {
		found(d.root.missing("CmsPlugins"), true, "CmsPlugins is missing, so Windows reads no account", fix)
		return
	}
	found(list, true, "CmsPlugins has no entry ActiveDirectory, so Windows reads no account", fix)
}

func pluginCase(d *document, found report) {
	for _, plugin := range d.plugins() {
		if text := strings.TrimSpace(plugin.text); text != activeDirectory && isActiveDirectory(plugin) {
			found(plugin, false, fmt.Sprintf("the plugin is written %s, and its name is ActiveDirectory", quoted(text)), "write it as ActiveDirectory")
		}
	}
}

func unknownPlugin(d *document, found report) {
	for _, plugin := range d.plugins() {
		if !isActiveDirectory(plugin) {
			found(plugin, false, fmt.Sprintf("%s is not a documented plugin", quoted(strings.TrimSpace(plugin.text))), "remove it: ActiveDirectory is all that a gMSA needs")
		}
	}
}

func duplicatePlugin(d *document, found report) {
	seen := map[string]bool{}
	for _, plugin := range d.plugins() {
		name := strings.ToLower(strings.TrimSpace(plugin.text))
		if seen[name] {
			found(plugin, false, fmt.Sprintf("the plugin %s is listed twice", quoted(plugin.text)), "keep one")
		}
		seen[name] = true
	}
}
