package lint_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/gmsa/lint"
)

// sample is the credspec of the requirement document, as JSON.
const sample = `{
  "ActiveDirectoryConfig": {
    "GroupManagedServiceAccounts": [
      {"Name": "WebApplication1", "Scope": "CONTOSO"},
      {"Name": "WebApplication1", "Scope": "contoso.com"}
    ]
  },
  "CmsPlugins": ["ActiveDirectory"],
  "DomainJoinConfig": {
    "DnsName": "contoso.com",
    "DnsTreeName": "contoso.com",
    "Guid": "244818ae-87ca-4fcd-92ec-e79e5252348a",
    "MachineAccountName": "WebApplication1",
    "NetBiosName": "CONTOSO",
    "Sid": "S-1-5-21-2126729477-2524075714-3094792973"
  }
}`

const hostAccount = `"HostAccountConfig":{"PortableCcgVersion":"1","PluginGUID":"{CCC2A336-D7F3-4818-A213-272B7924213E}","PluginInput":"ObjectId=3a1f;SecretUri=https://v.vault.azure.net/secrets/gmsa"}`

// edit returns the sample with texts replaced, in pairs; each must be there.
func edit(t *testing.T, pairs ...string) string {
	t.Helper()
	text := sample
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the sample has no %q", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// withHost returns the sample with a HostAccountConfig, with texts of it replaced.
func withHost(t *testing.T, pairs ...string) string {
	t.Helper()
	host := hostAccount
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(host, pairs[i]) {
			t.Fatalf("the host account has no %q", pairs[i])
		}
		host = strings.ReplaceAll(host, pairs[i], pairs[i+1])
	}
	return edit(t, "}\n    ]\n", "}\n    ],"+host+"\n")
}

// example is something bad, that a rule finds at a path, and something like it that is good.
type example struct {
	rule, bad, path string
	refused         bool
	good            string
}

func examples(t *testing.T) []example {
	const (
		join     = "credspec.DomainJoinConfig"
		accounts = "credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts"
		host     = "credspec.ActiveDirectoryConfig.HostAccountConfig"
		sid      = "S-1-5-21-2126729477-2524075714-3094792973"
		guid     = "244818ae-87ca-4fcd-92ec-e79e5252348a"
	)
	// Two entries of one account are on the way of rules that speak of one.
	oneAccount := func(pairs ...string) string {
		return edit(t, append([]string{`      {"Name": "WebApplication1", "Scope": "CONTOSO"},` + "\n", "", `{"Name": "WebApplication1", "Scope": "contoso.com"}`, pairs[0]}, pairs[1:]...)...)
	}
	const more = `{"Name": "WebApplication1", "Scope": "contoso.com"}`
	return []example{
		{"not-json", `{"CmsPlugins":`, "credspec", true, sample},
		{"not-json", sample + "{}", "credspec", true, sample + "\n"},
		{"not-json", "", "credspec", true, "{}"},
		{"not-json", "{\"a\":\"\xff\"}", "credspec", true, `{"a":"\u00ff"}`},
		{"too-deep", strings.Repeat("[", 40), "credspec", true, sample},
		{"not-an-object", `["ActiveDirectory"]`, "credspec", true, sample},
		{"not-an-object", `null`, "credspec", true, "{}"},
		{"too-long", edit(t, "WebApplication1", strings.Repeat("x", 64<<10)), "credspec", true, sample + strings.Repeat(" ", 64<<10)},

		{"wrong-type", edit(t, `["ActiveDirectory"]`, `"ActiveDirectory"`), "credspec.CmsPlugins", true, sample},
		{"wrong-type", withHost(t, `"1"`, `1`), host + ".PortableCcgVersion", true, withHost(t)},
		{"wrong-type", withHost(t, `"ObjectId=3a1f;SecretUri=https://v.vault.azure.net/secrets/gmsa"`, `{"CredentialArn":"arn:aws:x"}`), host + ".PluginInput", true, withHost(t)},
		{"wrong-type", edit(t, `"contoso.com",`, `null,`), join + ".DnsName", false, sample},
		{"wrong-type", edit(t, "}\n    ]\n", "}\n    ],\"HostAccountConfig\":null\n"), host, false, sample},
		{"domain-field-missing", edit(t, `"contoso.com",`, `null,`), join + ".DnsName", true, sample},
		{"duplicate-key", edit(t, `"Sid"`, `"Sid": "S-1-5-21-1-2-3", "Sid"`), join + ".Sid", true, sample},
		{"duplicate-key", edit(t, `"CmsPlugins"`, `"Else": {"a": 1, "a": 2}, "CmsPlugins"`), "credspec.Else.a", true, edit(t, `"CmsPlugins"`, `"Else": {"a": 1, "A": 2}, "CmsPlugins"`)},
		{"unknown-key", edit(t, `"CmsPlugins"`, `"Comment": "x", "CmsPlugins"`), "credspec.Comment", false, sample},
		{"unknown-key", edit(t, `"CmsPlugins"`, `"a b": "x", "CmsPlugins"`), `credspec["a b"]`, false, sample},
		{"key-case", edit(t, `"NetBiosName"`, `"NetBIOSName"`), join + ".NetBIOSName", false, sample},
		{"surrounding-space", edit(t, `"CONTOSO",`, `"CONTOSO ",`), join + ".NetBiosName", false, sample},

		{"no-active-directory-plugin", edit(t, `["ActiveDirectory"]`, `[]`), "credspec.CmsPlugins", true, edit(t, `["ActiveDirectory"]`, `["activedirectory"]`)},
		{"no-active-directory-plugin", edit(t, `"CmsPlugins": ["ActiveDirectory"],`, ``), "credspec.CmsPlugins", true, sample},
		{"plugin-case", edit(t, `["ActiveDirectory"]`, `["activedirectory"]`), "credspec.CmsPlugins[0]", false, sample},
		{"unknown-plugin", edit(t, `["ActiveDirectory"]`, `["ActiveDirectory","Other"]`), "credspec.CmsPlugins[1]", false, sample},
		{"duplicate-plugin", edit(t, `["ActiveDirectory"]`, `["ActiveDirectory","ActiveDirectory"]`), "credspec.CmsPlugins[1]", false, sample},

		{"no-domain", edit(t, `"DomainJoinConfig"`, `"Domain"`), join, true, edit(t, `"Sid"`, `"sid"`)},
		{"domain-field-missing", edit(t, `"Sid": "`+sid+`"`, `"Sid": ""`), join + ".Sid", true, edit(t, guid, "")},
		{"domain-field-missing", edit(t, `"DnsName": "contoso.com",`, ``), join + ".DnsName", true, sample},
		{"domain-field-missing", edit(t, `"CONTOSO",`, `" ",`), join + ".NetBiosName", true, sample},
		{"domain-field-missing", edit(t, `"MachineAccountName": "WebApplication1",`, ``), join + ".MachineAccountName", true, sample},
		{"domain-field-advised", edit(t, guid, ""), join + ".Guid", false, sample},
		{"domain-field-advised", edit(t, `"DnsTreeName": "contoso.com",`, ""), join + ".DnsTreeName", false, sample},

		{"sid-unreadable", edit(t, sid, "S-1-5-21-2126729477-2524075714-x"), join + ".Sid", true, edit(t, sid, sid+"-1105")},
		{"sid-unreadable", edit(t, sid, "S-1-5-21-1-2-4294967296"), join + ".Sid", true, edit(t, sid, "S-1-5-21-1-2-4294967295")},
		{"sid-unreadable", edit(t, sid, "$GMSA_SID"), join + ".Sid", true, edit(t, sid, "s-1-5-32-544")},
		{"account-sid", edit(t, sid, sid+"-1105"), join + ".Sid", false, sample},
		{"no-domain-sid", edit(t, sid, "S-1-5-32-544"), join + ".Sid", false, sample},
		{"no-domain-sid", edit(t, sid, "S-1-5-21-1-2"), join + ".Sid", false, edit(t, sid, sid+"-1105")},
		{"guid-unreadable", edit(t, guid, "244818ae-87ca-4fcd-92ec-e79e5252348"), join + ".Guid", true, edit(t, guid, "{"+guid+"}")},
		{"guid-unreadable", edit(t, guid, "244818ae-87ca-4fcd-92ec-g79e5252348a"), join + ".Guid", true, edit(t, guid, strings.ToUpper(guid))},
		{"guid-form", edit(t, guid, "{"+guid+"}"), join + ".Guid", false, edit(t, guid, strings.ToUpper(guid))},
		{"guid-form", edit(t, guid, strings.ReplaceAll(guid, "-", "")), join + ".Guid", false, sample},
		{"guid-zero", edit(t, guid, "00000000-0000-0000-0000-000000000000"), join + ".Guid", false, sample},
		{"dns-name", edit(t, `"DnsTreeName": "contoso.com"`, `"DnsTreeName": "contoso..com"`), join + ".DnsTreeName", false, edit(t, "contoso.com", "my_domain.contoso.com")},
		{"dns-name-single-label", edit(t, "contoso.com", "contoso"), join + ".DnsName", false, sample},
		{"forest-mismatch", edit(t, `"DnsTreeName": "contoso.com"`, `"DnsTreeName": "fabrikam.com"`), join + ".DnsTreeName", false, edit(t, `"DnsName": "contoso.com"`, `"DnsName": "emea.Contoso.com"`)},
		{"forest-mismatch", edit(t, `"DnsTreeName": "contoso.com"`, `"DnsTreeName": "emea.contoso.com"`), join + ".DnsTreeName", false, sample},
		{"forest-mismatch", edit(t, `"DnsName": "contoso.com"`, `"DnsName": "notcontoso.com"`), join + ".DnsTreeName", false, sample},
		{"netbios-name", edit(t, `"CONTOSO",`, `"contoso.com",`), join + ".NetBiosName", false, edit(t, "CONTOSO", "CON-TOSO_1")},
		{"netbios-name", edit(t, "CONTOSO", "CONTOSOCONTOSOCO"), join + ".NetBiosName", false, edit(t, "CONTOSO", "CONTOSOCONTOSOC")},
		{"netbios-name", edit(t, "CONTOSO", "CONTOSO/1"), join + ".NetBiosName", false, sample},
		{"machine-account-name", edit(t, `"MachineAccountName": "`, `"MachineAccountName": "CONTOSO\\`), join + ".MachineAccountName", true, edit(t, `"MachineAccountName": "WebApplication1"`, `"MachineAccountName": "WebApplication1$"`)},
		{"machine-account-not-listed", edit(t, `"MachineAccountName": "`, `"MachineAccountName": "Other`), join + ".MachineAccountName", false, edit(t, `"MachineAccountName": "WebApplication1"`, `"MachineAccountName": "webapplication1$"`)},

		{"no-account", edit(t, `"ActiveDirectoryConfig"`, `"Config"`), "credspec.ActiveDirectoryConfig", true, sample},
		{"no-account", edit(t, `"GroupManagedServiceAccounts"`, `"Accounts"`), accounts, true, sample},
		{"no-account", edit(t, `"GroupManagedServiceAccounts": [`, `"GroupManagedServiceAccounts": [], "Else": [`), accounts, true, sample},
		{"account-name-missing", oneAccount(`{"Scope": "contoso.com"}`), accounts + "[0].Name", true, oneAccount(more)},
		{"account-name-missing", oneAccount(`{"Scope": "contoso.com"},` + more), accounts + "[0].Name", false, sample},
		{"account-name", oneAccount(`{"Name": "CONTOSO\\WebApplication1", "Scope": "contoso.com"}`), accounts + "[0].Name", true, oneAccount(more)},
		{"account-name", oneAccount(`{"Name": "WebApplication1@contoso.com", "Scope": "contoso.com"}`), accounts + "[0].Name", true, oneAccount(more)},
		{"account-name", oneAccount(more + `,{"Name": "CONTOSO\\WebApplication1", "Scope": "CONTOSO"}`), accounts + "[1].Name", false, sample},
		{"account-name-length", edit(t, "WebApplication1", "WebApplication12"), accounts + "[0].Name", false, edit(t, `"WebApplication1"`, `"WebApplication1$"`)},
		{"account-dollar", edit(t, `"MachineAccountName": "WebApplication1"`, `"MachineAccountName": "WebApplication1$"`), join + ".MachineAccountName", false, edit(t, "WebApplication1", "Web$1")},
		{"account-dollar", edit(t, `"WebApplication1", "Scope": "contoso.com"`, `"WebApplication1$", "Scope": "contoso.com"`), accounts + "[1].Name", false, sample},
		{"scope-missing", oneAccount(`{"Name": "WebApplication1"}`), accounts + "[0].Scope", false, sample},
		{"scope-missing", oneAccount(`{"Name": "WebApplication1", "Scope": ""}`), accounts + "[0].Scope", false, sample},
		{"dns-scope-missing", edit(t, `"Scope": "contoso.com"`, `"Scope": "fabrikam.com"`), accounts, false, edit(t, `"Scope": "contoso.com"`, `"Scope": "CONTOSO.com"`)},
		{"netbios-scope-missing", oneAccount(more), accounts, false, edit(t, more, more+`,{"Name": "second", "Scope": "fabrikam.com"}`)},
		{"duplicate-account", edit(t, more, more+`,{"Name": "webapplication1", "Scope": "contoso.com"}`), accounts + "[2]", false, edit(t, more, more+`,{"Name": "WebApplication1", "Scope": "fabrikam.com"}`)},

		{"host-account-incomplete", withHost(t, `"PortableCcgVersion":"1",`, ``), host + ".PortableCcgVersion", false, withHost(t)},
		{"host-account-incomplete", edit(t, "}\n    ]\n", "}\n    ],\"HostAccountConfig\":{}\n"), host + ".PluginGUID", false, withHost(t)},
		{"portable-ccg-version", withHost(t, `"1"`, `"2"`), host + ".PortableCcgVersion", false, withHost(t)},
		{"plugin-guid", withHost(t, `{CCC2A336-D7F3-4818-A213-272B7924213E}`, `CCC2A336-D7F3-4818-A213-272B7924213E`), host + ".PluginGUID", false, withHost(t, "CCC2A336", "ccc2a336")},
		{"plugin-guid", withHost(t, `{CCC2A336-D7F3-4818-A213-272B7924213E}`, `{GDMA0342-266A-4D1P-831J-20990E82944F}`), host + ".PluginGUID", false, withHost(t)},
		{"plugin-input-password", withHost(t, "ObjectId=3a1f;", "user=x;Password=hunter2;"), host + ".PluginInput", false, withHost(t, "secrets/gmsa", "secrets/gmsa-password;Else=1")},
		{"plugin-input-password", withHost(t, "CCC2A336", "DDD2A336", "ObjectId=3a1f;SecretUri=https://v.vault.azure.net/secrets/gmsa", "contoso.com:gmsaccg:hunter2"), host + ".PluginInput", false,
			withHost(t, "CCC2A336", "DDD2A336", "ObjectId=3a1f;SecretUri=https://v.vault.azure.net/secrets/gmsa", "arn:aws:secretsmanager:x:1:secret:gmsa")},
		{"plugin-input-shape", withHost(t, "ObjectId=3a1f;", ""), host + ".PluginInput", false, withHost(t, "ObjectId=3a1f;SecretUri=https", "secreturi=https://x; objectid=1")},
		{"plugin-input-shape", withHost(t, "CCC2A336-D7F3-4818-A213-272B7924213E", "e4781092-f116-4b79-b55e-28eb6a224e26"), host + ".PluginInput", false,
			withHost(t, "CCC2A336-D7F3-4818-A213-272B7924213E", "e4781092-f116-4b79-b55e-28eb6a224e26", "ObjectId=3a1f;SecretUri=https://v.vault.azure.net/secrets/gmsa", "cattle-gmsa:account")},
		{"plugin-input-shape", withHost(t, "CCC2A336-D7F3-4818-A213-272B7924213E", "859E1386-BDB4-49E8-85C7-3070B13920E1"), host + ".PluginInput", false,
			withHost(t, "CCC2A336-D7F3-4818-A213-272B7924213E", "859E1386-BDB4-49E8-85C7-3070B13920E1", "ObjectId=3a1f;SecretUri=https://v.vault.azure.net/secrets/gmsa", `{\"credentialArn\":\"arn:aws:x\"}`)},
	}
}

func TestRules(t *testing.T) {
	shown := map[string]bool{}
	for _, example := range examples(t) {
		shown[example.rule] = true
		t.Run(example.rule, func(t *testing.T) {
			found := false
			for _, finding := range lint.Check([]byte(example.bad)) {
				if finding.Rule == example.rule && finding.Path == example.path {
					found = true
					if finding.Refused != example.refused {
						t.Errorf("refused is %v, want %v", finding.Refused, example.refused)
					}
				}
			}
			if !found {
				t.Errorf("nothing found at %s in %s, but %+v", example.path, example.bad, lint.Check([]byte(example.bad)))
			}
			for _, finding := range lint.Check([]byte(example.good)) {
				if finding.Rule == example.rule {
					t.Errorf("found in what is good: %+v", finding)
				}
			}
		})
	}
	for _, rule := range lint.Rules() {
		if !shown[rule] {
			t.Errorf("rule %s has no example", rule)
		}
		delete(shown, rule)
	}
	if len(shown) > 0 {
		t.Errorf("examples of rules that do not exist: %v", shown)
	}
}

// TestFindingsAreSentences holds for all findings of all examples, and for which findings there can be.
func TestFindingsAreSentences(t *testing.T) {
	for _, example := range examples(t) {
		for _, finding := range lint.Check([]byte(example.bad)) {
			wellFormed(t, finding, []byte(example.bad))
			if strings.Contains(finding.Reason+finding.Fix, "hunter2") {
				t.Errorf("a password is repeated: %+v", finding)
			}
		}
	}
}

func wellFormed(t *testing.T, finding lint.Finding, of []byte) {
	t.Helper()
	switch {
	case !slices.Contains(lint.Rules(), finding.Rule):
		t.Errorf("no rule: %+v", finding)
	case finding.Reason == "" || finding.Fix == "" || strings.ContainsAny(finding.Reason+finding.Fix+finding.Path, "\n\r\x1b"):
		t.Errorf("reason, fix and path are not one line each: %+v", finding)
	case !strings.HasPrefix(finding.Path, "credspec"):
		t.Errorf("path: %+v", finding)
	case finding.Offset < 0 || finding.Offset > len(of):
		t.Errorf("outside of the document: %+v", finding)
	case len(finding.Reason)+len(finding.Fix) > 1500:
		t.Errorf("too long to read: %+v", finding)
	}
}

func TestSampleIsFine(t *testing.T) {
	for name, spec := range map[string]string{
		"the document's": sample,
		"with host":      withHost(t),
		"without spaces": strings.ReplaceAll(strings.ReplaceAll(sample, "\n", ""), " ", ""),
		"further account": edit(t, `{"Name": "WebApplication1", "Scope": "contoso.com"}`,
			`{"Name": "WebApplication1", "Scope": "contoso.com"},{"Name": "second", "Scope": "emea.contoso.com"}`),
	} {
		if diff := cmp.Diff([]lint.Finding(nil), lint.Check([]byte(spec))); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
	}
}

// TestEmptyObject: there is one finding for each part that is missing, and none for parts of it.
func TestEmptyObject(t *testing.T) {
	var rules []string
	for _, finding := range lint.Check([]byte(`{}`)) {
		rules = append(rules, finding.Rule)
	}
	if diff := cmp.Diff([]string{"no-active-directory-plugin", "no-domain", "no-account"}, rules); diff != "" {
		t.Error(diff)
	}
}

func TestOrderAndPlace(t *testing.T) {
	spec := edit(t, `"CONTOSO",`, `"CONTOSO.",`, `"DnsName"`, `"dnsName"`, "WebApplication1", "WebApplication1$")
	findings := lint.Check([]byte(spec))
	if !slices.IsSortedFunc(findings, func(a, b lint.Finding) int { return a.Offset - b.Offset }) {
		t.Errorf("not in the order of the document: %+v", findings)
	}
	for _, finding := range findings {
		if finding.Rule == "key-case" && !strings.HasPrefix(spec[finding.Offset:], `"dnsName"`) {
			t.Errorf("a key is found at %q", spec[finding.Offset:])
		}
		if finding.Rule == "netbios-name" && !strings.HasPrefix(spec[finding.Offset:], `"CONTOSO."`) {
			t.Errorf("a value is found at %q", spec[finding.Offset:])
		}
	}
	if diff := cmp.Diff(findings, lint.Check([]byte(spec))); diff != "" {
		t.Errorf("two times of the same differ:\n%s", diff)
	}
}

// TestHostileLength: a fault that repeats everywhere is reported a few times, in bounded time.
func TestHostileLength(t *testing.T) {
	for name, spec := range map[string]string{
		"accounts": `{"ActiveDirectoryConfig":{"GroupManagedServiceAccounts":[` + strings.Repeat(`{"Name":"a@"},`, 30_000) + `{}]}}`,
		"plugins":  `{"CmsPlugins":[` + strings.Repeat(`"",`, 30_000) + `""]}`,
		"keys":     `{` + strings.Repeat(`"a":1,`, 30_000) + `"a":1}`,
	} {
		if findings := lint.Check([]byte(spec)); len(findings) == 0 || len(findings) > 200 {
			t.Errorf("%s: %d findings", name, len(findings))
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{"CmsPlugins":[[1]],"DomainJoinConfig":{"Sid":"S-1-5-21-1-2-3-4","Guid":"{}"},"ActiveDirectoryConfig":{` + hostAccount + `}}`))
	f.Add([]byte(`{"a":{"a":[null,true,1e9]},"a":"\ud800"}`))
	f.Add([]byte(strings.Repeat(`{"a":`, 40)))
	f.Add([]byte("\xef\xbb\xbf{}"))
	f.Fuzz(func(t *testing.T, spec []byte) {
		findings := lint.Check(spec)
		for _, finding := range findings {
			wellFormed(t, finding, spec)
		}
		var object map[string]any
		if json.Unmarshal(spec, &object) != nil && len(findings) == 0 {
			t.Errorf("no finding for a value that is not an object: %q", spec)
		}
		if diff := cmp.Diff(findings, lint.Check(spec)); diff != "" {
			t.Errorf("two times of the same differ:\n%s", diff)
		}
	})
}
