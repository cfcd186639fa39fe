package lint

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	dashedGUID  = regexp.MustCompile(`\A[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}\z`)
	anyGUID     = regexp.MustCompile(`\A(?:[0-9A-Fa-f]{32}|\{[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\}|\([0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\))\z`)
	notHexDigit = strings.NewReplacer("{", "", "}", "", "(", "", ")", "", "-", "")
)

func guidUnreadable(d *document, found report) {
	if text, at := d.domain().value("Guid"); at != nil && !dashedGUID.MatchString(text) && !anyGUID.MatchString(text) {
		found(at, true, fmt.Sprintf("%s is not a GUID: GUIDs have 8-4-4-4-12 hexadecimal digits", quoted(text)), sources()["Guid"])
	}
}

func guidForm(d *document, found report) {
	if text, at := d.domain().value("Guid"); at != nil && anyGUID.MatchString(text) {
		hex := notHexDigit.Replace(text)
		found(at, false, "the GUID of the domain is not written as New-CredentialSpec writes it, and not every Windows may read it",
			fmt.Sprintf("write it as %s-%s-%s-%s-%s", hex[:8], hex[8:12], hex[12:16], hex[16:20], hex[20:]))
	}
}

func guidZero(d *document, found report) {
	if text, at := d.domain().value("Guid"); at != nil && (dashedGUID.MatchString(text) || anyGUID.MatchString(text)) && strings.Trim(notHexDigit.Replace(text), "0") == "" {
		found(at, false, "the GUID is all zeros, which no domain has", sources()["Guid"])
	}
}
