package targets

import "github.com/credence-id/credence/internal/clouderror"

// Explain returns the known errors in a text, the most specific first. system, if it is not empty, is the one that refused:
// then errors of others are left out. It has documented and observed errors only.
func Explain(text, system string) []clouderror.Explanation {
	return clouderror.Find(text, Errors(system))
}

// Errors returns the errors of a system that are explained; of all of them if system is empty.
func Errors(system string) []clouderror.Explanation {
	var all []clouderror.Explanation
	for _, s := range systems {
		if s.Errors == nil || system != "" && s.Name != system {
			continue
		}
		for _, e := range s.Errors() {
			e.System = s.Name
			all = append(all, e)
		}
	}
	return all
}
