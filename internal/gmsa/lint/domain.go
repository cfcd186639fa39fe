package lint

import (
	"fmt"
	"slices"
	"strings"
)

const domainJoinConfig = "DomainJoinConfig"

// domain is DomainJoinConfig; nil if it is not an object.
func (d *document) domain() *node { return d.root.object(domainJoinConfig) }

func noDomain(d *document, found report) {
	if d.root.member(domainJoinConfig) == nil {
		found(d.root.missing(domainJoinConfig), true, "DomainJoinConfig is missing, so the container belongs to no domain",
			"add it, with the facts that Get-ADDomain prints")
	}
}

// sources describes each field of DomainJoinConfig and where its value comes from.
func sources() map[string]string {
	return map[string]string{
		"Sid":                "set it to the SID of the domain: (Get-ADDomain).DomainSID.Value",
		"MachineAccountName": "set it to the name of the account, without the $ at its end: (Get-ADServiceAccount NAME).Name",
		"Guid":               "set it to the GUID of the domain: (Get-ADDomain).ObjectGUID",
		"DnsTreeName":        "set it to the DNS name of the forest: (Get-ADDomain).Forest",
		"DnsName":            "set it to the DNS name of the domain: (Get-ADDomain).DNSRoot",
		"NetBiosName":        "set it to the NetBIOS name of the domain: (Get-ADDomain).NetBIOSName",
	}
}

func domainFieldMissing(d *document, found report) {
	d.lackingFields(found, true, "without which the container joins no domain", "Sid", "MachineAccountName", "DnsName", "NetBiosName")
}

// domainFieldAdvised is for the fields of which it is not known that no Windows can do without.
func domainFieldAdvised(d *document, found report) {
	d.lackingFields(found, false, "and Windows expects all facts of the domain", "Guid", "DnsTreeName")
}

func (d *document) lackingFields(found report, refused bool, consequence string, fields ...string) {
	domain := d.domain()
	if domain == nil {
		return
	}
	for _, field := range fields {
		if at := domain.lacking(field); at != nil {
			state := "missing"
			if at.kind == aString {
				state = "empty"
			}
			found(at, refused, fmt.Sprintf("%s is %s, %s", field, state, consequence), sources()[field])
		}
	}
}

func dnsName(d *document, found report) {
	for _, field := range []string{"DnsName", "DnsTreeName"} {
		if name, at := d.domain().value(field); at != nil && !isDNSName(name) {
			found(at, false, fmt.Sprintf("%s is not a DNS name: labels of letters, digits, - and _, with dots between them", quoted(name)), sources()[field])
		}
	}
}

func dnsNameSingleLabel(d *document, found report) {
	for _, field := range []string{"DnsName", "DnsTreeName"} {
		if name, at := d.domain().value(field); at != nil && isDNSName(name) && !strings.Contains(name, ".") {
			found(at, false, fmt.Sprintf("%s has no dot, which few domains do not have: it may be the NetBIOS name", quoted(name)), sources()[field])
		}
	}
}

func forestMismatch(d *document, found report) {
	name, _ := d.domain().value("DnsName")
	forest, at := d.domain().value("DnsTreeName")
	if name == "" || forest == "" || !isDNSName(name) || !isDNSName(forest) || within(name, forest) {
		return
	}
	if within(forest, name) {
		found(at, false, fmt.Sprintf("the forest %s lies within the domain %s, and it is the other way round", quoted(forest), quoted(name)),
			"exchange DnsTreeName, the forest, and DnsName, the domain")
		return
	}
	found(at, false, fmt.Sprintf("the domain %s is not within the forest %s, which is so only in a forest of several trees", quoted(name), quoted(forest)),
		"see that it is what (Get-ADDomain).Forest prints, in the domain of the account")
}

// within reports whether name is parent or a subdomain of it.
func within(name, parent string) bool {
	name, parent = strings.ToLower(name), strings.ToLower(parent)
	return name == parent || strings.HasSuffix(name, "."+parent)
}

func isDNSName(name string) bool {
	return len(name) <= 253 && !slices.ContainsFunc(strings.Split(name, "."), func(label string) bool {
		return label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") ||
			strings.ContainsFunc(label, func(r rune) bool {
				return r < 0x80 && !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
			})
	})
}

const maxNetBIOSName = 15

func netBIOSName(d *document, found report) {
	name, at := d.domain().value("NetBiosName")
	if at == nil {
		return
	}
	switch {
	case strings.Contains(name, "."):
		found(at, false, fmt.Sprintf("%s has a dot, as the DNS name of a domain has", quoted(name)), sources()["NetBiosName"])
	case len([]rune(name)) > maxNetBIOSName:
		found(at, false, fmt.Sprintf("%s is longer than the %d characters of a NetBIOS name", quoted(name), maxNetBIOSName), sources()["NetBiosName"])
	case strings.ContainsAny(name, `\/:*?"<>|@ `):
		found(at, false, fmt.Sprintf("%s has a character that no NetBIOS name of a domain has", quoted(name)), sources()["NetBiosName"])
	}
}
