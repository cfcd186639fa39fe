package securitycontext

import (
	"strings"
	"unicode/utf8"
)

const (
	maxUser     = 104 // bytes
	maxDomain   = 255 // bytes
	maxNetBIOS  = 15  // characters
	maxDNSLabel = 63  // bytes

	userForbids    = `"/\:;|=,+*?<>@[]`
	netBIOSForbids = `\/:*?"<>|`
)

// userNameFaults returns the faults of a runAsUserName, USER or DOMAIN\USER. Each of the first three faults is returned alone, the
// others all together.
//
// Lengths of user and domain are in bytes, though the messages have characters. ".\user" and "user@domain" are refused;
// "-d\u", "d m\u", "dom.\u", which look as odd, are not, as they could be NetBIOS names.
func userNameFaults(name string) []string {
	if name == "" {
		return []string{"runAsUserName cannot be an empty string"}
	}
	if strings.ContainsFunc(name, asciiControl) {
		return []string{"runAsUserName cannot contain control characters"}
	}
	domain, user, hasDomain := strings.Cut(name, `\`)
	if !hasDomain {
		domain, user = "", name
	}
	if strings.Contains(user, `\`) {
		return []string{"runAsUserName cannot contain more than one backslash"}
	}

	var faults []string
	if len(domain) > maxDomain {
		faults = append(faults, "runAsUserName's Domain length must be under 256 characters")
	}
	if hasDomain && !netBIOSName(domain) && !dnsName(domain) {
		faults = append(faults, "runAsUserName's Domain doesn't match the NetBios nor the DNS format")
	}
	switch {
	case user == "":
		faults = append(faults, "runAsUserName's User cannot be empty")
	case len(user) > maxUser:
		faults = append(faults, "runAsUserName's User length must not be longer than 104 characters")
	}
	if user != "" && strings.Trim(user, ". ") == "" {
		faults = append(faults, "runAsUserName's User cannot contain only periods or spaces")
	}
	if strings.ContainsAny(user, userForbids) {
		faults = append(faults, "runAsUserName's User cannot contain the following characters: "+userForbids)
	}
	return faults
}

// asciiControl leaves out the control characters beyond ASCII, as Kubernetes does.
func asciiControl(r rune) bool { return r < 0x20 || r == 0x7f }

// netBIOSName is what Microsoft calls a NetBIOS domain name: 1 to 15 characters, the first of them not a period.
func netBIOSName(s string) bool {
	n := utf8.RuneCountInString(s)
	return 1 <= n && n <= maxNetBIOS && s[0] != '.' && !strings.ContainsAny(s, netBIOSForbids)
}

// dnsName takes upper case, and labels of digits only. It has no limit for the whole.
func dnsName(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > maxDNSLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-') {
				return false
			}
		}
	}
	return true
}
