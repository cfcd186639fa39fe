package lint

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var sidForm = regexp.MustCompile(`\A[Ss]-1-([0-9]{1,15}|0[xX][0-9A-Fa-f]{1,12})((?:-[0-9]{1,20}){1,15})\z`)

// sid is the SID of the document as it is written, its authority and its sub-authorities. ok is false if it is absent or invalid.
func (d *document) sid() (text string, at *node, authority string, parts []string, ok bool) {
	text, at = d.domain().value("Sid")
	form := sidForm.FindStringSubmatch(text)
	if form == nil {
		return text, at, "", nil, false
	}
	parts = strings.Split(form[2], "-")[1:]
	for _, part := range parts {
		if _, err := strconv.ParseUint(part, 10, 32); err != nil {
			return text, at, "", nil, false
		}
	}
	return text, at, form[1], parts, true
}

func sidUnreadable(d *document, found report) {
	if text, at, _, _, ok := d.sid(); at != nil && !ok {
		found(at, true, fmt.Sprintf("%s is not a SID: a domain's has the form S-1-5-21-A-B-C, of numbers below 4294967296", quoted(text)), sources()["Sid"])
	}
}

// inDomain reports whether a SID, by its authority and first sub-authority, is that of a domain or of an object in one.
func inDomain(authority string, parts []string) bool {
	return strings.TrimLeft(authority, "0") == "5" && parts[0] == "21"
}

const domainSubAuthorities = 4 // 21 and the three numbers of the domain

func accountSID(d *document, found report) {
	text, at, authority, parts, ok := d.sid()
	if !ok || !inDomain(authority, parts) || len(parts) <= domainSubAuthorities {
		return
	}
	fix := "set it to the SID of the domain: (Get-ADDomain).DomainSID.Value"
	if len(parts) == domainSubAuthorities+1 {
		fix = fmt.Sprintf("cut off the last number, or see (Get-ADDomain).DomainSID.Value: S-1-%s-%s", authority, strings.Join(parts[:domainSubAuthorities], "-"))
	}
	found(at, false, fmt.Sprintf("%s is the SID of an account, and not of the domain: it has %d numbers after S-1-5-21, and a domain has 3", quoted(text), len(parts)-1), fix)
}

func noDomainSID(d *document, found report) {
	text, at, authority, parts, ok := d.sid()
	if ok && (!inDomain(authority, parts) || len(parts) < domainSubAuthorities) {
		found(at, false, fmt.Sprintf("%s is a SID, and not of the form of a domain's, S-1-5-21-A-B-C", quoted(text)), sources()["Sid"])
	}
}
