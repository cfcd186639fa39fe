package discovery

import "strings"

// noneMatch evaluates the If-None-Match fields of a request against a document's strong validator, by weak comparison
// (RFC 9110, sections 8.8.3.2 and 13.1.2). False means that the client has the document already.
func noneMatch(fields []string, current string) bool {
	for _, field := range fields {
		if strings.Trim(field, " \t") == "*" || listed(field, current) {
			return false
		}
	}
	return true
}

// listed walks a list of entity tags, whose text may hold commas. The rest after an invalid tag is ignored.
func listed(list, current string) bool {
	for {
		list = strings.TrimLeft(list, " \t,")
		tag := strings.TrimPrefix(list, "W/")
		if len(tag) < 2 || tag[0] != '"' {
			return false
		}
		end := strings.IndexByte(tag[1:], '"')
		if end < 0 {
			return false
		}
		if tag[:end+2] == current {
			return true
		}
		list = tag[end+2:]
	}
}
