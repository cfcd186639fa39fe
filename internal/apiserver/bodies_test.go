package apiserver

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// The machinery turns YAML into JSON before validation sees an object, and reads JSON to apply as YAML. A number that it would store
// as another one is refused as in JSON, and so is what it would store as text that was not written.
func TestProviderConfigsOfYAML(t *testing.T) {
	const (
		inYAML  = "spec: {targetSystem: {providerConfig: {x: %}}}"
		inBlock = "spec:\n  targetSystem:\n    providerConfig:\n      x:\n      - %\n"
		inJSON  = `{"spec":{"targetSystem":{"providerConfig":{"x":[%]}}}}`
		create  = "application/yaml"
		apply   = "application/apply-patch+yaml"
		path    = "spec.targetSystem.providerConfig: "
	)
	const changes = "does not fit in 64 bits"
	var tests []struct{ contentType, body, want string }
	add := func(form, want string, values ...string) {
		for _, value := range values {
			for _, contentType := range []string{create, "Application/YAML; charset=utf-8", apply} {
				tests = append(tests, struct{ contentType, body, want string }{contentType, strings.Replace(form, "%", value, 1), want})
			}
		}
	}
	for _, form := range []string{inYAML, inBlock, inJSON} {
		add(form, changes, "123456789012345678901234567890", "18446744073709551616", "9223372036854775808", "0.1000000000000000055", "5e-400", "1e400", "-1E+400", "9007199254740993.0")
		add(form, "", "0", "-17", "1.0", "1.50", "0.1", "1e3", "1E+3", "9007199254740993", "9223372036854775807", "-9223372036854775808", "1e22",
			`"123456789012345678901234567890"`, `"1e400"`, "true", "null")
	}
	for _, form := range []string{inYAML, inBlock} {
		add(form, changes, "+9223372036854775808", "18_446_744_073_709_551_616", "0xffffffffffffffff", "0x52908400098527886E0F7030069857D2E4169EE7", "0b1"+strings.Repeat("0", 63), "01000000000000000000000", "-02000000000000000000000",
			".1000000000000000055", "!!float 9007199254740993", `!!int "18446744073709551616"`, "!<tag:yaml.org,2002:float> 5e-400")
		add(form, "", "+1", "1_000", "0xff", "-0x10", "0o17", "017", "08", "0b101", ".5", "+.5", "5.", "!!float 1", "!!float 1.5", `!!int "1"`, "!!str 1e400", "'1e400'", "1.2.3", "2026-01-02", "a1e400", "1e400x")
		add(form, "!!binary", "!!binary gICA", "!<tag:yaml.org,2002:binary> gICA")
		add(form, "as a key", "{1.5: x}", "{1e400: x}", "{18446744073709551616: x}")
		add(form, changes, "{a: [{b: 1e400}]}", "{a: 1, b: {1: 1e400}}")
		add(form, "", "{1: x}", `{"1.5": x}`)
	}
	add("<<: {spec: {targetSystem: {providerConfig: {x: %}}}}", changes, "1e400")
	add("{!!binary c3BlYw==: {targetSystem: {providerConfig: {x: %}}}}", "!!binary", "1")
	add(`{"spec":{"targetSystem":{"providerConfig":{"x":%}}},"Spec":{"targetSystem":{"providerConfig":{}}}}`, changes, "1e400")
	add(inJSON, "twice", `{"a":1,"a":2}`)
	add(inJSON, "half of a surrogate pair", `"\ud800"`)
	for _, test := range tests {
		info := &request.RequestInfo{Verb: "create", APIGroup: "authentication.gardener.cloud", Resource: "workloadidentities", Name: "x"}
		if test.contentType == apply {
			info.Verb = "patch"
		}
		err := checkBody(info, test.contentType, []byte(test.body))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s as %s: %v", test.body, test.contentType, err)
		case test.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s as %s: %v, want it to be invalid: %s", test.body, test.contentType, err, test.want)
		case strings.HasPrefix(test.body, "spec") && err != nil && !strings.Contains(err.Error(), path):
			t.Errorf("%s as %s: %v, want the path %s", test.body, test.contentType, err, path)
		}
	}
}

// Of other bodies, numbers are judged where they are read.
func TestNumbersOfOtherBodies(t *testing.T) {
	const config = `{"spec":{"targetSystem":{"providerConfig":{"x":1e400}}}}`
	for name, test := range map[string]struct {
		info        request.RequestInfo
		contentType string
		body        string
	}{
		"an object in JSON, which is validated":      {request.RequestInfo{Verb: "create", Resource: "workloadidentities"}, "application/json", config},
		"a merge patch, whose result is validated":   {request.RequestInfo{Verb: "patch", Resource: "workloadidentities"}, "application/merge-patch+json", config},
		"a request for a token":                      {request.RequestInfo{Verb: "create", Resource: "workloadidentities", Subresource: "token"}, "application/yaml", "spec: {x: 1e400}"},
		"options to delete":                          {request.RequestInfo{Verb: "delete", Resource: "workloadidentities"}, "application/yaml", "x: 1e400"},
		"an object of another kind":                  {request.RequestInfo{Verb: "create", Resource: "quotas"}, "application/yaml", "spec: {x: 1e400}"},
		"text that the machinery refuses: no object": {request.RequestInfo{Verb: "create", Resource: "workloadidentities"}, "application/yaml", "1e400"},
	} {
		if err := checkBody(&test.info, test.contentType, []byte(test.body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
