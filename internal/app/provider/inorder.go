package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/credential/inorder"
)

// inOrder is the source whose arguments are command lines of others.
type inOrder struct{}

func inOrderFlags(*pflag.FlagSet) Settings { return inOrder{} }

// parseLines parses command lines with -- between them.
func parseLines(args []string) ([]*Line, error) {
	var lines []*Line
	for rest, more := args, true; more; {
		words := rest
		if at := slices.Index(rest, "--"); at >= 0 {
			words, rest = rest[:at], rest[at+1:]
		} else {
			more = false
		}
		line, err := ParseLine(words)
		switch {
		case err != nil:
		case line.kind.Lines:
			err = errors.New("in-order is not a source of in-order")
		case line.CacheFolder != "":
			err = errors.New("--cache-folder is for all sources: write it before the first --")
		}
		if err != nil {
			return nil, fmt.Errorf("source %d: %w", len(lines)+1, err)
		}
		lines = append(lines, line)
	}
	if len(lines) < 2 {
		return nil, errors.New("wanted are two sources at least: in-order -- SOURCE… -- SOURCE…")
	}
	return lines, nil
}

func (inOrder) Choose(args []string, place Place, info credential.ExecInfo) (Chosen, error) {
	lines, err := parseLines(args)
	if err != nil {
		return Chosen{}, err
	}
	source, chosen := &inorder.Source{Now: place.Now}, Chosen{Margin: -1, Alternatives: len(lines) - 1, LockTimeout: time.Minute}
	if info.Cluster != nil {
		source.Server = info.Cluster.Server
	}
	numbers := map[string]int{}
	for i, line := range lines {
		name := fmt.Sprintf("source %d (%s)", i+1, line.kind.Name)
		one, err := line.Choose(place, info)
		if err != nil {
			return Chosen{}, fmt.Errorf("%s: %w", name, err)
		}
		from, err := one.Provider(place.CacheFolder, info, place.Now, silent{})
		if err != nil {
			return Chosen{}, err
		}
		words := strings.Join(line.Words(), " ")
		id := words
		if key := one.Key(); key != nil {
			text, err := json.Marshal(key)
			if err != nil {
				return Chosen{}, err
			}
			id = string(text)
		}
		if same := numbers[id]; same > 0 {
			return Chosen{}, fmt.Errorf("sources %d and %d are the same", same, i+1)
		}
		numbers[id] = i + 1
		source.Parts = append(source.Parts, inorder.Part{Source: one, Name: name, ID: id, Login: line.Words(), Provider: *from})
		chosen.LockTimeout += max(one.LockTimeout, credential.DefaultLockTimeout)
	}
	chosen.Source = source
	return chosen, nil
}
