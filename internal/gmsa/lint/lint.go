// Package lint checks credential specs without Windows and without a domain. In go the bytes of one credspec as JSON; out come
// findings, in the order of the document: errors that no node can use, and valid settings that fail in practice, each with its
// reason and its fix. It makes no requests, never changes its input, never repeats the input of a plugin, which may hold a
// password by mistake, and never panics.
//
// Only a spec that no node can use is refused. A doubtful one gets a warning: a spec that works somewhere is never refused.
package lint

import (
	"cmp"
	"slices"
)

// Finding is one thing that is wrong with a credential spec.
type Finding struct {
	// Rule is the name of what found it, in kebab case. Names stay.
	Rule string `json:"rule"`
	// Path is the field, as in credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts[1].Name. A missing field has the path that
	// it would have.
	Path string `json:"path"`
	// Offset counts the bytes of the document before the value, or before the key if the key is at fault. For what is missing it
	// is that of the object that lacks it.
	Offset int `json:"-"`
	// Refused is true for what can never work, and false for a warning.
	Refused bool `json:"refused"`
	// Reason is a sentence that describes the fault.
	Reason string `json:"reason"`
	// Fix is a sentence that describes the correction.
	Fix string `json:"fix"`
}

// maxPerRule bounds the findings of one rule: a fault in hundreds of places is seen by the first.
const maxPerRule = 20

// Check checks the JSON value of a credspec. It returns no findings if it sees no fault, and at most 20 of each rule.
func Check(credspec []byte) []Finding {
	root, failed := parse(credspec)
	if failed != nil {
		return []Finding{*failed}
	}
	d := &document{raw: credspec, root: root}
	for _, rule := range rules() {
		count := 0
		rule.check(d, func(at *node, refused bool, reason, fix string) {
			if count++; count > maxPerRule {
				return
			}
			d.findings = append(d.findings, Finding{
				Rule: rule.name, Path: at.path, Offset: at.at, Refused: refused, Reason: reason, Fix: fix,
			})
		})
	}
	slices.SortStableFunc(d.findings, func(a, b Finding) int { return cmp.Compare(a.Offset, b.Offset) })
	return d.findings
}

// Rules returns the names of all rules, in the order in which they are applied.
func Rules() []string {
	names := []string{notJSON, tooDeep, notAnObject}
	for _, rule := range rules() {
		names = append(names, rule.name)
	}
	return names
}

// rule is one question. A new rule is a function, a line of rules, and a folder of testdata.
type rule struct {
	name  string
	check func(*document, report)
}

// report records a finding at a value, or at the place where it is missing.
type report func(at *node, refused bool, reason, fix string)

func rules() []rule {
	return []rule{
		{"too-long", tooLong},
		{"wrong-type", wrongType}, // before the rules that read values: they skip values of the wrong type
		{"duplicate-key", duplicateKey},
		{"unknown-key", unknownKey},
		{"key-case", keyCase},
		{"surrounding-space", surroundingSpace},

		{"no-active-directory-plugin", noActiveDirectoryPlugin},
		{"plugin-case", pluginCase},
		{"unknown-plugin", unknownPlugin},
		{"duplicate-plugin", duplicatePlugin},

		{"no-domain", noDomain},
		{"domain-field-missing", domainFieldMissing},
		{"domain-field-advised", domainFieldAdvised},
		{"sid-unreadable", sidUnreadable},
		{"account-sid", accountSID},
		{"no-domain-sid", noDomainSID},
		{"guid-unreadable", guidUnreadable},
		{"guid-form", guidForm},
		{"guid-zero", guidZero},
		{"dns-name", dnsName},
		{"dns-name-single-label", dnsNameSingleLabel},
		{"forest-mismatch", forestMismatch},
		{"netbios-name", netBIOSName},
		{"machine-account-name", machineAccountName},
		{"machine-account-not-listed", machineAccountNotListed},

		{"no-account", noAccount},
		{"account-name-missing", accountNameMissing},
		{"account-name", accountName},
		{"account-name-length", accountNameLength},
		{"account-dollar", accountDollar},
		{"scope-missing", scopeMissing},
		{"dns-scope-missing", dnsScopeMissing},
		{"netbios-scope-missing", netBIOSScopeMissing},
		{"duplicate-account", duplicateAccount},

		{"host-account-incomplete", hostAccountIncomplete},
		{"portable-ccg-version", portableCCGVersion},
		{"plugin-guid", pluginGUID},
		{"plugin-input-password", pluginInputPassword},
		{"plugin-input-shape", pluginInputShape},
	}
}
