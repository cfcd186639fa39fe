package securitycontext_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/test/testkit"
)

func userNameRefusals(name string) []string {
	return refusals(&corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{
		WindowsOptions: &corev1.WindowsSecurityContextOptions{RunAsUserName: &name},
	}})
}

const (
	noFormat   = "runAsUserName's Domain doesn't match the NetBios nor the DNS format"
	domainLong = "runAsUserName's Domain length must be under 256 characters"
	noUser     = "runAsUserName's User cannot be empty"
	userLong   = "runAsUserName's User length must not be longer than 104 characters"
	dotsOnly   = "runAsUserName's User cannot contain only periods or spaces"
	forbidden  = `runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]`
	control    = "runAsUserName cannot contain control characters"
	backslash  = "runAsUserName cannot contain more than one backslash"
)

func TestRunAsUserName(t *testing.T) {
	label := strings.Repeat("a", 63)
	// 255 and 256 bytes, as 63-character labels with periods between them
	domain255 := strings.Join([]string{label, label, label, label}, ".")
	domain256 := strings.Join([]string{label, label, label, label[1:], "a"}, ".")
	for name, want := range map[string][]string{
		"ContainerAdministrator":               nil,
		`NT AUTHORITY\NETWORK SERVICE`:         nil,
		`CONTOSO\webapp$`:                      nil,
		`contoso.com\100%'`:                    nil,
		"trailing. ":                           nil,
		"":                                     {"runAsUserName cannot be an empty string"},
		"a\tb":                                 {control},
		"a\x7fb":                               {control},
		"\x00\\\\":                             {control},
		"a\u0085b":                             nil, // a control character, but not in ASCII
		`a\b\c`:                                {backslash},
		`\\`:                                   {backslash},
		`.\user`:                               {noFormat},
		`\user`:                                {noFormat},
		`dom\`:                                 {noUser},
		`\`:                                    {noFormat, noUser},
		"user@contoso.com":                     {forbidden},
		"...":                                  {dotsOnly},
		` . `:                                  {dotsOnly},
		strings.Repeat("u", 104):               nil,
		strings.Repeat("u", 105):               {userLong},
		strings.Repeat("é", 52):                nil,
		strings.Repeat("é", 53):                {userLong}, // 53 characters, 106 bytes
		strings.Repeat(".", 105):               {userLong, dotsOnly},
		strings.Repeat("?", 105):               {userLong, forbidden},
		`d m\u`:                                nil,
		`dom.\u`:                               nil,
		`-dom\u`:                               nil,
		`do_main\u`:                            nil,
		`d@m\u`:                                nil,
		strings.Repeat("é", 15) + `\u`:         nil,
		strings.Repeat("é", 16) + `\u`:         {noFormat},
		"d\xffm\\u\xff":                        nil, // not UTF-8
		`NETBIOS16CHARSXY\u`:                   nil, // too long for NetBIOS, a DNS name
		`NETBIOS_16CHARSX\u`:                   {noFormat},
		`a..averylongdomain\u`:                 {noFormat},
		`averylongdomain-.com\u`:               {noFormat},
		`-averylongdomain.com\u`:               {noFormat},
		`averylongdomain.com.\u`:               {noFormat},
		label + `a.com\u`:                      {noFormat},
		domain255 + `\u`:                       nil,
		domain256 + `\u`:                       {domainLong},
		strings.Repeat("a", 256) + `\`:         {domainLong, noFormat, noUser},
		strings.Repeat("a", 256) + `\` + `...`: {domainLong, noFormat, dotsOnly},
	} {
		t.Run(fmt.Sprintf("%.40q", name), func(t *testing.T) {
			value := testkit.Need(json.Marshal(name))(t)
			for i, message := range want {
				want[i] = fmt.Sprintf("spec.securityContext.windowsOptions.runAsUserName: Invalid value: %s: %s", value, message)
			}
			if diff := cmp.Diff(want, userNameRefusals(name)); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
	for _, c := range `"/:;|=,+*?<>@[]` {
		if got := userNameRefusals("a" + string(c)); len(got) != 1 || !strings.HasSuffix(got[0], forbidden) {
			t.Errorf("a user with %q: %v", c, got)
		}
	}
	for _, c := range `/:*?"<>|` {
		if got := userNameRefusals("a" + string(c) + `\u`); len(got) != 1 || !strings.HasSuffix(got[0], noFormat) {
			t.Errorf("a domain with %q: %v", c, got)
		}
	}
}

func FuzzRunAsUserName(f *testing.F) {
	for _, name := range []string{"", "ContainerAdministrator", `NT AUTHORITY\NETWORK SERVICE`, `.\user`, "user@contoso.com", "a\x7f", `\\\`, "d\xff\\u", strings.Repeat("é.", 60)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if len(userNameRefusals(name)) > 0 {
			return
		}
		domain, user, hasDomain := strings.Cut(name, `\`)
		if !hasDomain {
			domain, user = "", name
		}
		switch {
		case len(domain) > 255 || len(user) > 104 || user == "":
			t.Errorf("%q is taken, with a domain of %d and a user of %d bytes", name, len(domain), len(user))
		case hasDomain && (domain == "" || domain[0] == '.' || utf8.RuneCountInString(domain) > 15 && strings.ContainsAny(domain, ` _@`)):
			t.Errorf("%q is taken, with the domain %q", name, domain)
		case strings.ContainsAny(domain, `/:*?"<>|`) || strings.ContainsAny(user, `"/\:;|=,+*?<>@[]`):
			t.Errorf("%q is taken, with characters that no name can have", name)
		}
		for _, worse := range []string{name + "\n", name + `\`, name + "@", strings.Repeat(".", 256) + `\` + name} {
			if worse != name+`\` && len(userNameRefusals(worse)) == 0 {
				t.Errorf("%q is taken", worse)
			}
		}
	})
}
