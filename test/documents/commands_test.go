package documents_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/credence-id/credence/internal/app/cli"
	"github.com/credence-id/credence/internal/app/up"
	"github.com/credence-id/credence/test/documents"
	"github.com/credence-id/credence/test/testkit"
)

// sourcesSection has the flags of the sources of credentials, which are those of login and kubeconfig too.
const sourcesSection = "credence credential"

// Each command and each flag is in the reference of the command line, and the reference has no other.
func TestDocumentsNameCommands(t *testing.T) {
	content := testkit.Need(os.ReadFile(filepath.Join(documents.Repository, "docs", "reference", "command-line.md")))(t)
	reference := string(content)
	root := cli.New(genericiooptions.IOStreams{}, cli.Options{})
	root.AddCommand(up.NewCommands(genericiooptions.IOStreams{})...)
	commands := map[string]*cobra.Command{}
	collect(root, commands)
	if len(commands) < 40 {
		t.Fatalf("%d commands only", len(commands))
	}
	sections := map[string]string{}
	for _, section := range strings.Split(reference, "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		sections[heading] = text
	}
	described := map[string][]*cobra.Command{} // by section
	for _, path := range slices.Sorted(maps.Keys(commands)) {
		if !hasCommand(reference, path) {
			t.Errorf("the command %s is not in the reference", path)
		}
		places := []string{sectionOf(sections, path)}
		if strings.Contains(places[0], "login") {
			places = append(places, sourcesSection)
		}
		text := reference // of a command without a section
		if places[0] != "" {
			text = ""
		}
		for _, place := range places {
			described[place] = append(described[place], commands[path])
			text += sections[place]
		}
		commands[path].LocalFlags().VisitAll(func(flag *pflag.Flag) {
			name := "--" + flag.Name
			if flag.Shorthand != "" {
				name += "|-" + flag.Shorthand
			}
			inherited := commands[path].InheritedFlags().Lookup(flag.Name) != nil
			if flag.Name != "help" && !flag.Hidden && !inherited && !regexp.MustCompile(`(^|[^\w-])(`+name+`)($|[^\w-])`).MatchString(text) {
				t.Errorf("the flag --%s of %s is not in the reference, section %q", flag.Name, path, places[0])
			}
		})
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `credence ([a-z][a-z-]*(?: [a-z][a-z-]*)*)").FindAllStringSubmatch(reference, -1) {
		if _, rest, err := root.Find(strings.Fields(row[1])); err != nil || len(rest) > 0 {
			t.Errorf("the reference has the command %s, which does not exist", row[1])
		}
	}
	for section, text := range sections {
		for _, cell := range regexp.MustCompile("(?m)^\\| \\W*`--?[a-z][^|]*").FindAllString(text, -1) {
			for _, flag := range regexp.MustCompile(`--([a-z][a-z-]*)`).FindAllStringSubmatch(cell, -1) {
				if !slices.ContainsFunc(described[section], func(cmd *cobra.Command) bool { return cmd.Flag(flag[1]) != nil }) {
					t.Errorf("the section %q has the flag --%s, which no command of it has", section, flag[1])
				}
			}
		}
	}
}

// collect finds the commands that do something, by their paths without the name of the program. Those of cobra itself have help alone.
func collect(cmd *cobra.Command, commands map[string]*cobra.Command) {
	for _, sub := range cmd.Commands() {
		switch {
		case sub.Hidden || sub.Name() == "help" || sub.Name() == "completion":
		case sub.HasSubCommands():
			collect(sub, commands)
		default:
			_, path, _ := strings.Cut(sub.CommandPath(), " ")
			commands[path] = sub
		}
	}
}

// hasCommand reports whether the list of commands has one, or has its group with an argument in capitals that it is a value of.
func hasCommand(reference, path string) bool {
	group, name := path[:max(0, strings.LastIndex(path, " "))], path[strings.LastIndex(path, " ")+1:]
	return regexp.MustCompile("(?m)^\\| .*`credence "+path+"[` ]").MatchString(reference) ||
		regexp.MustCompile("(?m)^\\| `credence "+group+" [A-Z]").MatchString(reference) && strings.Contains(reference, "\n| `"+name+"` |")
}

// sectionOf returns the heading that names a command, or the group that it is in; "" if none does.
func sectionOf(sections map[string]string, path string) string {
	best, length := "", 0
	for heading := range sections {
		for name := range strings.SplitSeq(heading, ", ") {
			name = strings.TrimPrefix(name, "credence ")
			if (path == name || strings.HasPrefix(path, name+" ")) && len(name) > length {
				best, length = heading, len(name)
			}
		}
	}
	return best
}
