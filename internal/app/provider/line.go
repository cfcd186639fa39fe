package provider

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
)

// Line is a command line that was parsed.
type Line struct {
	Settings Settings
	Args     []string
	// CacheFolder is the flag of that name.
	CacheFolder string
	kind        Kind
	flags       *pflag.FlagSet
	// kubeconfig, context and namespace are the flags that choose a cluster.
	kubeconfig, context, namespace string
}

// CacheFolderFlag adds the flag that all sources have.
func CacheFolderFlag(flags *pflag.FlagSet, value *string) {
	flags.StringVar(value, "cache-folder", "", "The folder where credentials are kept; default: credence/credentials in the user's folder for caches")
}

// ParseLine parses SOURCE [ARGUMENT] [FLAGS], which a word credential may precede. A flag that it does not know is an error, even if
// the command line of Credence knows it.
func ParseLine(args []string) (*Line, error) {
	if len(args) > 0 && args[0] == "credential" {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil, errors.New("no source is given")
	}
	kinds := Kinds()
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == args[0] })
	if i < 0 {
		return nil, fmt.Errorf("unknown source %q", args[0])
	}
	kind, line := kinds[i], &Line{}
	flags := pflag.NewFlagSet(kind.Name, pflag.ContinueOnError)
	flags.Usage = func() {}
	line.Settings = kind.Flags(flags)
	CacheFolderFlag(flags, &line.CacheFolder)
	if kind.Kubeconfig {
		line.addKubeconfigFlags(flags)
	}
	if err := flags.Parse(args[1:]); err != nil {
		return nil, err
	}
	line.Args = flags.Args()
	line.kind, line.flags = kind, flags
	if most := map[bool]int{true: 1}[kind.Argument != ""]; len(line.Args) > most && !kind.Lines {
		return nil, fmt.Errorf("there are %d arguments", len(line.Args))
	}
	return line, nil
}

func (l *Line) addKubeconfigFlags(flags *pflag.FlagSet) {
	flags.StringVar(&l.kubeconfig, "kubeconfig", "", "")
	flags.StringVarP(&l.namespace, "namespace", "n", "", "")
	flags.StringVar(&l.context, "kube-context", "", "")
	if flags.Lookup("context") == nil {
		flags.StringVar(&l.context, "context", "", "")
	}
}

// Choose returns the source that the command line names.
func (l *Line) Choose(place Place, info credential.ExecInfo) (Chosen, error) {
	place.Kubeconfig, place.Context, place.Namespace = l.kubeconfig, l.context, l.namespace
	if l.CacheFolder != "" {
		place.CacheFolder = l.CacheFolder
	}
	return l.Settings.Choose(l.Args, place, info)
}

// Words returns the words of a command line that name the same source, with the paths of files absolute.
func (l *Line) Words() []string { return l.kind.Words(l.Args, l.flags) }

// Words is Line.Words for arguments and flags that were parsed. Flags that are not of the source are left out.
func (k Kind) Words(args []string, flags *pflag.FlagSet) []string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	k.Flags(own)
	CacheFolderFlag(own, new(string))
	if k.Kubeconfig {
		(&Line{}).addKubeconfigFlags(own)
	}
	words := []string{k.Name}
	if !k.Lines {
		words = append(words, args...)
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		if !flag.Changed || own.Lookup(flag.Name) == nil {
			return
		}
		values := []string{flag.Value.String()}
		if slice, ok := flag.Value.(pflag.SliceValue); ok {
			values = slice.GetSlice()
		}
		for _, value := range values {
			if slices.Contains(append([]string{"cache-folder", "kubeconfig"}, k.Files...), flag.Name) {
				value = here(value)
			}
			words = append(words, "--"+flag.Name+"="+value)
		}
	})
	if !k.Lines {
		return words
	}
	lines, err := parseLines(args)
	if err != nil {
		return append(append(words, "--"), args...)
	}
	for _, line := range lines {
		words = append(append(words, "--"), line.Words()...)
	}
	return words
}

// here is the absolute path, for this working directory.
func here(path string) string {
	if path == "" {
		return path
	}
	if absolute, err := filepath.Abs(path); err == nil {
		return absolute
	}
	return path
}
