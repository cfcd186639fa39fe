package lint

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// hostAccount is HostAccountConfig; nil if it is absent, as on nodes that are joined to the domain.
func (d *document) hostAccount() *node {
	return d.root.object(activeDirectoryConfig).object("HostAccountConfig")
}

func hostAccountIncomplete(d *document, found report) {
	host := d.hostAccount()
	if host == nil {
		return
	}
	for _, need := range [][2]string{
		{"PortableCcgVersion", `set it to "1"`},
		{"PluginGUID", "set it to the GUID of the plugin's COM class, in braces"},
		{"PluginInput", "set it to what the plugin needs to find its secret, by its documentation"},
	} {
		if at := host.lacking(need[0]); at != nil {
			found(at, false, fmt.Sprintf("HostAccountConfig has no %s, and a node that is not joined to the domain needs all three", need[0]), need[1]+", or remove HostAccountConfig")
		}
	}
}

func portableCCGVersion(d *document, found report) {
	if version, at := d.hostAccount().value("PortableCcgVersion"); at != nil && version != "1" {
		found(at, false, fmt.Sprintf("PortableCcgVersion is %s, and the only version is \"1\"", quoted(version)), `set it to "1"`)
	}
}

var bracedGUID = regexp.MustCompile(`\A\{[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}\z`)

// sampleGUID stands in the documentation of Windows, and in many files that were made after it.
const sampleGUID = "{GDMA0342-266A-4D1P-831J-20990E82944F}"

func pluginGUID(d *document, found report) {
	guid, at := d.hostAccount().value("PluginGUID")
	switch {
	case at == nil || bracedGUID.MatchString(guid):
	case dashedGUID.MatchString(guid):
		found(at, false, "PluginGUID has no braces around it", "write it as {"+guid+"}")
	case strings.EqualFold(strings.Trim(guid, "{}"), strings.Trim(sampleGUID, "{}")):
		found(at, false, "PluginGUID is the sample of the documentation, which is not a GUID and not a plugin's", "set it to the GUID of the plugin that the nodes have")
	default:
		found(at, false, fmt.Sprintf("%s is not a GUID in braces: GUIDs have 8-4-4-4-12 hexadecimal digits", quoted(guid)), "set it to the GUID of the plugin's COM class, in braces")
	}
}

// plugin is what is known of a plugin of the Container Credential Guard.
type plugin struct {
	name, form string
	fits       func(input string) bool
}

// knownPlugins is by GUID, in capitals, without braces.
func knownPlugins() map[string]plugin {
	return map[string]plugin{
		"CCC2A336-D7F3-4818-A213-272B7924213E": {"Azure Key Vault", "ObjectId=ID;SecretUri=URI", func(input string) bool {
			return hasFields(input, "objectid", "secreturi")
		}},
		"E4781092-F116-4B79-B55E-28EB6A224E26": {"Rancher", "NAMESPACE:SECRET", regexp.MustCompile(`\A[a-z0-9.-]+:[a-z0-9.-]+\z`).MatchString},
		"859E1386-BDB4-49E8-85C7-3070B13920E1": {"AWS", `{"credentialArn":"arn:..."}, as text`, func(input string) bool {
			var fields map[string]string
			if json.Unmarshal([]byte(input), &fields) != nil {
				return false
			}
			for key, value := range fields {
				if strings.EqualFold(key, "credentialArn") && strings.HasPrefix(value, "arn:") {
					return true
				}
			}
			return false
		}},
	}
}

func hasFields(input string, names ...string) bool {
	fields := map[string]bool{}
	for part := range strings.SplitSeq(input, ";") {
		name, value, _ := strings.Cut(part, "=")
		fields[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value) != ""
	}
	return !slices.ContainsFunc(names, func(name string) bool { return !fields[name] })
}

// knownPlugin is the plugin of the document, if it is one that is known.
func (d *document) knownPlugin() (plugin, bool) {
	guid, _ := d.hostAccount().value("PluginGUID")
	known, ok := knownPlugins()[strings.ToUpper(strings.Trim(guid, "{}"))]
	return known, ok
}

func pluginInputShape(d *document, found report) {
	input, at := d.hostAccount().value("PluginInput")
	if known, ok := d.knownPlugin(); ok && at != nil && !known.fits(input) {
		found(at, false, fmt.Sprintf("PluginInput is not of the form that the plugin of %s reads", known.name), "give it the form "+known.form)
	}
}

var (
	passwordField = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:[a-z0-9_]*(?:password|passwd|passphrase|pwd)|(?:client|account|shared|secret)[_-]?(?:access[_-]?)?(?:secret|key))["']?\s*[=:]\s*\S`)
	// threeParts is DOMAIN:USER:PASSWORD, the form of the documentation's sample.
	threeParts = regexp.MustCompile(`\A[^:;=/{\s]+:[^:;=/{\s]+:\S+\z`)
)

func pluginInputPassword(d *document, found report) {
	input, at := d.hostAccount().value("PluginInput")
	if at == nil {
		return
	}
	known, ok := d.knownPlugin()
	if ok && known.fits(input) && !passwordField.MatchString(input) {
		return
	}
	if passwordField.MatchString(input) || threeParts.MatchString(input) && !strings.HasPrefix(input, "arn:") {
		found(at, false, "PluginInput looks as if it has a password, which every reader of the object or a pod sees",
			"put the password into a secret store, and name its place here; if it was a real one, change it")
	}
}
