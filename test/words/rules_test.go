package words

import (
	"regexp"
	"strings"
)

// rule is a pattern that plain technical English does without.
type rule struct {
	name    string
	pattern *regexp.Regexp
	// except, if not nil, matches what the pattern finds but is good English.
	except  *regexp.Regexp
	instead string
	why     string
	// bad is found by the rule, good is not: TestRules holds both.
	bad, good string
}

var rules = []rule{
	{
		name:    "whether",
		pattern: regexp.MustCompile(`\b([Ss]ay|says|said|[Tt]ell|tells|told) whether\b`),
		instead: "reports whether",
		why:     "that is how the documentation of Go describes a function that returns a bool",
		bad:     "Both say whether it is.", good: "Due reports whether it is.",
	},
	{
		name:    "person",
		pattern: regexp.MustCompile(`(?i)\b(user )?(no|some|any|every)body\b|\bwho(so|m)?ever\b`),
		except:  regexp.MustCompile(`^user `), // the Unix user
		instead: "the role (a user, an admin, a caller), or the passive voice",
		why:     "a reader must know which user, component or caller is meant",
		bad:     "Anybody can read it.", good: "Any pod can read it.",
	},
	{
		name:    "none",
		pattern: regexp.MustCompile(`\b([Ii]s|[Aa]re|was|were|be|been) none\b`),
		instead: "is invalid, is missing, is not a …, or without …",
		why:     "an error names the fault, not the absence of a noun",
		bad:     "the ports are none", good: "the ports are invalid",
	},
	{
		name:    "is no",
		pattern: regexp.MustCompile(`\b([Ii]t|[Tt]his|that|which|what|who) (is|are|was|were) no [a-z]+`),
		except:  regexp.MustCompile(` no (longer|more|less|fewer|better|worse|later|earlier|older|newer|such|one)$`),
		instead: "is not a …",
		why:     "the field writes \"is not a directory\"",
		bad:     "a file that is no socket", good: "a file that is no longer there is not a socket",
	},
	{
		name:    "tells",
		pattern: regexp.MustCompile(`\b([Tt]ells|[Tt]old)\b`),
		instead: "reports, informs, notifies, configures; distinguished for \"told apart\"",
		why:     "functions report, servers answer, settings configure",
		bad:     "The server was told the name.", good: "The server is configured with the name.",
	},
	{
		name:    "says",
		pattern: regexp.MustCompile(`\b([Ss]ays|[Ss]aid)\b`),
		instead: "reports, returns, states, names, defines",
		why:     "functions report and return, documents state, fields name",
		bad:     "The file says which.", good: "The file names it. See what users say.",
	},
	{
		name:    "asks",
		pattern: regexp.MustCompile(`\b[Aa]sks\b|\b(is|are|was|were|be|been|being) asked\b`),
		instead: "requests, calls, queries, looks up, prompts, requires",
		why:     "clients request, callers call, programs prompt",
		bad:     "The API server is asked.", good: "The agent requests it from the API server.",
	},
	{
		name:    "headless",
		pattern: regexp.MustCompile(`(^|[.:!?)]\**\s+\**)(Who|Whom|What) [a-z][^.?!:;]*[.?!:;]`),
		except:  regexp.MustCompile(`\?$|^What to `),
		instead: "a noun: \"A user who …\", \"Anything that …\"",
		why:     "a sentence needs its subject",
		bad:     "It is kept. What is left\nis removed.", good: "What is left? Files that are left are removed.",
	},
	{
		name:    "who",
		pattern: regexp.MustCompile(`[:;]\s+who [a-z][^,.?!:;]*([.!:;]|$)`), // with a comma it may be a list of questions
		instead: "a noun: \"a user who …\"",
		why:     "a sentence needs its subject",
		bad:     "It is shown by a digest: who reads the pod\nmay not read the object.", good: "It holds the rights: who may read, who may write. One question: who writes?",
	},
}

// finding is a place that breaks a rule.
type finding struct {
	rule rule
	path string
	line int
	text string
}

// check returns what breaks a rule in a text.
func check(t text) []finding {
	var found []finding
	for _, r := range rules {
		for _, at := range r.pattern.FindAllStringIndex(t.content, -1) {
			match := strings.TrimLeft(t.content[at[0]:at[1]], ".:;!?)* \t\n")
			if r.except != nil && r.except.MatchString(match) {
				continue
			}
			start := at[1] - len(match)
			found = append(found, finding{rule: r, path: t.path, line: t.line + strings.Count(t.content[:start], "\n"), text: match})
		}
	}
	return found
}
