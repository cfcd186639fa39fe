package lint

import (
	"fmt"
	"slices"
	"strings"
)

const (
	activeDirectoryConfig = "ActiveDirectoryConfig"
	managedAccounts       = "GroupManagedServiceAccounts"
)

// accounts are the entries of GroupManagedServiceAccounts that are objects.
func (d *document) accounts() []*node {
	return d.root.object(activeDirectoryConfig).member(managedAccounts).each(anObject)
}

func noAccount(d *document, found report) {
	const fix = "list the account twice: with the DNS name of its domain as Scope, and with the NetBIOS name"
	config := d.root.member(activeDirectoryConfig)
	if config == nil {
		found(d.root.missing(activeDirectoryConfig), true, "ActiveDirectoryConfig is missing, so there is no account", fix)
		return
	}
	if config.mistyped {
		return
	}
	switch list := config.member(managedAccounts); {
	case list == nil:
		found(config.missing(managedAccounts), true, "GroupManagedServiceAccounts is missing, so there is no account", fix)
	case !list.mistyped && len(list.items) == 0:
		found(list, true, "GroupManagedServiceAccounts is empty, so there is no account", fix)
	}
}

// usable reports whether Windows could look an entry up.
func usable(account *node) bool {
	name, at := account.value("Name")
	return at != nil && !hasStrangeCharacter(name)
}

// anyUsable reports whether a container gets an account in spite of faulty entries.
func (d *document) anyUsable() bool {
	return slices.ContainsFunc(d.accounts(), usable)
}

func accountNameMissing(d *document, found report) {
	anyUsable := d.anyUsable()
	for _, account := range d.accounts() {
		if at := account.lacking("Name"); at != nil {
			found(at, !anyUsable, "the account has no Name", sources()["MachineAccountName"])
		}
	}
}

// hasStrangeCharacter reports whether a name has characters that Active Directory does not accept in account names.
func hasStrangeCharacter(name string) bool {
	return strings.ContainsAny(name, "\"/\\[]:;|=,+*?<>@\x00")
}

const nameForm = "%s is not an account name, which is given alone, without the domain, \\ or @"

func accountName(d *document, found report) {
	anyUsable := d.anyUsable()
	for _, account := range d.accounts() {
		if name, at := account.value("Name"); at != nil && hasStrangeCharacter(name) {
			found(at, !anyUsable, fmt.Sprintf(nameForm, quoted(name)), "give the name alone, and the domain as Scope")
		}
	}
}

func machineAccountName(d *document, found report) {
	if name, at := d.domain().value("MachineAccountName"); at != nil && hasStrangeCharacter(name) {
		found(at, true, fmt.Sprintf(nameForm, quoted(name)), sources()["MachineAccountName"])
	}
}

// maxAccountName is the length of a computer's NetBIOS name, in whose manner gMSAs are named.
const maxAccountName = 15

func accountNameLength(d *document, found report) {
	d.eachName(func(name string, at *node) {
		if bare := strings.TrimSuffix(name, "$"); len([]rune(bare)) > maxAccountName {
			found(at, false, fmt.Sprintf("%s is longer than the %d characters that New-ADServiceAccount takes", quoted(bare), maxAccountName),
				"give the SamAccountName that Get-ADServiceAccount prints, without the $ at its end")
		}
	})
}

func accountDollar(d *document, found report) {
	d.eachName(func(name string, at *node) {
		if bare, has := strings.CutSuffix(name, "$"); has {
			found(at, false, fmt.Sprintf("%s ends with the $ of a SamAccountName, which Windows adds itself", quoted(name)), fmt.Sprintf("write it as %s", quoted(bare)))
		}
	})
}

// eachName calls see for every name of an account.
func (d *document) eachName(see func(name string, at *node)) {
	if name, at := d.domain().value("MachineAccountName"); at != nil {
		see(name, at)
	}
	for _, account := range d.accounts() {
		if name, at := account.value("Name"); at != nil {
			see(name, at)
		}
	}
}

func machineAccountNotListed(d *document, found report) {
	name, at := d.domain().value("MachineAccountName")
	if at == nil || len(d.accounts()) == 0 {
		return
	}
	if len(d.scopesOf(name)) == 0 {
		found(at, false, fmt.Sprintf("MachineAccountName is %s, of which GroupManagedServiceAccounts has no entry", quoted(name)),
			"make it the Name of one of the accounts, or add the account")
	}
}

// sameAccount compares names as Active Directory does, without regard to case and the $.
func sameAccount(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(a, "$"), strings.TrimSuffix(b, "$"))
}

// scopesOf are the entries of an account, each with its scope, which may be "".
func (d *document) scopesOf(name string) []string {
	var scopes []string
	for _, account := range d.accounts() {
		if other, at := account.value("Name"); at != nil && sameAccount(name, other) {
			scope, _ := account.value("Scope")
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

func scopeMissing(d *document, found report) {
	for _, account := range d.accounts() {
		if at := account.lacking("Scope"); at != nil {
			found(at, false, "the account has no Scope, so its domain is not known", "set it to the DNS name or to the NetBIOS name of the account's domain")
		}
	}
}

func dnsScopeMissing(d *document, found report) {
	d.lacksScope("DnsName", func(at *node, account, scope string) {
		found(at, false, fmt.Sprintf("the account %s has no entry with the DNS name of the domain as Scope, without which NTLM may be used in place of Kerberos", quoted(account)),
			fmt.Sprintf("add an entry with Name %s and Scope %s", quoted(account), quoted(scope)))
	})
}

func netBIOSScopeMissing(d *document, found report) {
	d.lacksScope("NetBiosName", func(at *node, account, scope string) {
		found(at, false, fmt.Sprintf("the account %s has no entry with the NetBIOS name of the domain as Scope, so programs that name it DOMAIN\\account do not find it", quoted(account)),
			fmt.Sprintf("add an entry with Name %s and Scope %s", quoted(account), quoted(scope)))
	})
}

// lacksScope calls found if the container's own account is listed, and not with that name of the domain. Further accounts may be
// of other domains, and have one entry.
func (d *document) lacksScope(field string, found func(at *node, account, scope string)) {
	account, at := d.domain().value("MachineAccountName")
	scope, known := d.domain().value(field)
	if at == nil || known == nil {
		return
	}
	scopes := d.scopesOf(account)
	if len(scopes) > 0 && !slices.ContainsFunc(scopes, func(has string) bool { return strings.EqualFold(has, scope) }) {
		list := d.root.object(activeDirectoryConfig).member(managedAccounts)
		found(list, strings.TrimSuffix(account, "$"), scope)
	}
}

func duplicateAccount(d *document, found report) {
	seen := map[[2]string]bool{}
	for _, account := range d.accounts() {
		name, at := account.value("Name")
		scope, _ := account.value("Scope")
		if at == nil {
			continue
		}
		entry := [2]string{strings.ToLower(strings.TrimSuffix(name, "$")), strings.ToLower(scope)}
		if seen[entry] {
			found(account, false, fmt.Sprintf("the account %s with the Scope %s is listed twice", quoted(name), quoted(scope)), "keep one, or correct the Scope of the other")
		}
		seen[entry] = true
	}
}
