//go:build unix

package up

import (
	"fmt"
	"slices"
	"strings"
)

// extraArguments reads the values of --arg: COMPONENT=ARGUMENT each.
func extraArguments(texts []string) (map[string][]string, error) {
	extra := map[string][]string{}
	for _, text := range texts {
		name, argument, ok := strings.Cut(text, "=")
		if !ok || !strings.HasPrefix(argument, "-") {
			return nil, fmt.Errorf("--arg %q must be COMPONENT=ARGUMENT, such as controller=--key-rotation-period=1h", text)
		}
		if !slices.ContainsFunc(components, func(c component) bool { return c.name == name }) {
			return nil, fmt.Errorf("--arg %q: there is no component %q, the components are %s", text, name, strings.Join(names(), ", "))
		}
		extra[name] = append(extra[name], argument)
	}
	return extra, nil
}

func names() []string {
	var all []string
	for _, c := range components {
		all = append(all, c.name)
	}
	return all
}
