package targettest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/credence-id/credence/internal/target"
)

// Check parses a providerConfig and, if it is accepted, checks what it injects, wherever the workload finds its token.
func Check(t testing.TB, adapter target.Adapter, providerConfig []byte) {
	t.Helper()
	config, errs := adapter.Parse(providerConfig, path())
	if len(errs) > 0 {
		if config != nil {
			t.Errorf("%s: a configuration beside errors", providerConfig)
		}
		return
	}
	for _, place := range []target.Place{
		target.SecretPlace(adapter.Type()),
		target.PodPlace(target.Linux, target.DefaultMountPath, "one"),
		target.PodPlace(target.Linux, "/else where", "one.two"),
		target.PodPlace(target.Windows, target.DefaultMountPath, "one"),
		target.PodPlace(target.Windows, `D:\new\table`, "one"),
	} {
		injection := config.Injection(place)
		checkInjection(t, injection, place)
		if diff := cmp.Diff(injection, config.Injection(place)); diff != "" {
			t.Errorf("a second injection is another one:\n%s", diff)
		}
	}
	for _, fixed := range config.Account() {
		if fixed.Path == nil || !strings.HasPrefix(fixed.Path.String(), path().String()+".") {
			t.Errorf("fixed value %q has the path %s", fixed.Value, fixed.Path)
		}
	}
	limits := adapter.Limits()
	for _, audience := range config.Audiences() {
		if limits.Audience > 0 && len([]rune(audience)) > limits.Audience {
			t.Errorf("the expected audience %q is longer than %d", audience, limits.Audience)
		}
	}
}

func checkInjection(t testing.TB, injection target.Injection, place target.Place) {
	t.Helper()
	contents := map[string]string{}
	for _, key := range injection.Keys {
		if problems := validation.IsConfigMapKey(key.Name); len(problems) > 0 {
			t.Errorf("key %q: %s", key.Name, problems[0])
		}
		if _, twice := contents[key.Name]; twice || key.Name == "token" || key.Name == "config" {
			t.Errorf("key %s is taken", key.Name)
		}
		contents[key.Name] = key.Content
		checkContent(t, key, place)
	}
	for i, mount := range injection.Mounts {
		if _, ok := contents[mount]; !ok || slices.Contains(injection.Mounts[:i], mount) {
			t.Errorf("mount %s is not a key, or stands twice", mount)
		}
	}
	var names []string
	for _, variable := range injection.Env {
		if problems := validation.IsCIdentifier(variable.Name); len(problems) > 0 || slices.Contains(names, variable.Name) {
			t.Errorf("variable %q stands twice, or is not a valid name: %v", variable.Name, problems)
		}
		names = append(names, variable.Name)
		if variable.Value == "" || strings.ContainsFunc(variable.Value, unicode.IsControl) || strings.Contains(variable.Value, "$(") {
			t.Errorf("variable %s is %q: it must not be empty, and have no control characters and no references", variable.Name, variable.Value)
		}
		if file, ok := strings.CutPrefix(variable.Value, place.File("")); ok && file != target.TokenFile && !slices.Contains(injection.Mounts, file) {
			t.Errorf("variable %s names the file %q, which is not mounted", variable.Name, file)
		}
	}
}

var iniLine = regexp.MustCompile(`\A[a-z_]+=[^\s;#][^\n\r;#]*\z`)

// checkContent: a file reads back as one of its format, and names no place but the token's.
func checkContent(t testing.TB, key target.Key, place target.Place) {
	t.Helper()
	if strings.ContainsFunc(key.Content, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || r == unicode.ReplacementChar) }) {
		t.Errorf("key %s has control characters: %q", key.Name, key.Content)
	}
	if strings.Contains(strings.ReplaceAll(key.Content, `\\`, `\`), "/var/run/") && place.OS == target.Windows {
		t.Errorf("key %s has a path of Linux on Windows: %s", key.Name, key.Content)
	}
	switch {
	case strings.HasPrefix(key.Content, "["):
		lines := strings.Split(strings.TrimSuffix(key.Content, "\n"), "\n")
		if !slices.Contains(lines, "web_identity_token_file="+place.Token()) {
			t.Errorf("key %s does not name the token %s:\n%s", key.Name, place.Token(), key.Content)
		}
		var settings []string
		for _, line := range lines[1:] {
			setting, _, _ := strings.Cut(line, "=")
			if !iniLine.MatchString(line) || slices.Contains(settings, setting) {
				t.Errorf("key %s has the line %q", key.Name, line)
			}
			settings = append(settings, setting)
		}
	case strings.HasPrefix(key.Content, "{"):
		var read any
		if err := json.Unmarshal([]byte(key.Content), &read); err != nil {
			t.Errorf("key %s is not JSON: %v", key.Name, err)
		} else if !holds(read, place.Token()) {
			t.Errorf("key %s does not name the token %s: %s", key.Name, place.Token(), key.Content)
		}
	case strings.Contains(key.Content, "\n"):
		var read any
		if err := yaml.UnmarshalStrict([]byte(key.Content), &read); err != nil {
			t.Errorf("key %s is not YAML: %v", key.Name, err)
		} else if !holds(read, place.Token()) {
			t.Errorf("key %s does not name the token %s: %s", key.Name, place.Token(), key.Content)
		}
	}
}

// holds reports whether a string is somewhere in decoded data.
func holds(read any, text string) bool {
	switch read := read.(type) {
	case string:
		return read == text
	case []any:
		return slices.ContainsFunc(read, func(element any) bool { return holds(element, text) })
	case map[string]any:
		for _, element := range read {
			if holds(element, text) {
				return true
			}
		}
	}
	return false
}
