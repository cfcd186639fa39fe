package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const (
	// startsPerRound is how often each program is started for a round of the settings.
	startsPerRound = 4
	// startLimit is what the small program may take more than one that does nothing.
	startLimit = 5 * time.Millisecond
	// nothing is the program that does nothing.
	nothing = "true"
)

// provider is a program that is started with a credential that is kept.
type provider struct {
	name    string
	command []string
}

// measureCredential starts the programs that serve what is kept, and one that does nothing, in turns.
func measureCredential(ctx context.Context, s settings, _ plane, t *table) error {
	path, err := exec.LookPath(nothing)
	if err != nil {
		return fmt.Errorf("find a program that does nothing: %w", err)
	}
	dir, err := os.MkdirTemp("", "credence-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	small, err := keptBy(ctx, s, dir, "credence-credential")
	if err != nil {
		return err
	}
	whole, err := keptBy(ctx, s, dir, "credence")
	if err != nil {
		return err
	}
	rounds := startsPerRound * s.rounds
	fmt.Fprintf(os.Stderr, "bench: providers with a token that is kept, %d starts of each\n", rounds)
	took := map[string][]time.Duration{}
	for round := range rounds {
		order := inTurn([]provider{{nothing, []string{path}}, small, whole}, round)
		got, err := startUnderParent(ctx, order)
		if err != nil {
			return err
		}
		for i, p := range order {
			took[p.name] = append(took[p.name], got[i])
		}
	}
	for _, r := range startProviderRows(took[small.name], took[whole.name], took[nothing]) {
		t.add(r)
	}
	return nil
}

// inTurn returns a round's order: another one is the first each time, and every second order is reversed.
func inTurn(list []provider, round int) []provider {
	first := round % len(list)
	order := slices.Concat(list[first:], list[:first])
	if round%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// keptBy lets a program get a token, which it keeps in a folder of its own. The server that gave it is gone afterwards, so that
// each later run of the program returns the stored token, or an error.
func keptBy(ctx context.Context, s settings, dir, name string) (provider, error) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": keptToken, "token_type": "Bearer", "expires_in": 3600,
			"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"})
	}))
	defer server.Close()
	subject := filepath.Join(dir, "subject-token")
	if err := os.WriteFile(subject, []byte("subject"), 0o600); err != nil {
		return provider{}, err
	}
	program, err := filepath.Abs(filepath.Join(s.bin, name))
	if err != nil {
		return provider{}, err
	}
	p := provider{name, []string{program, "credential", "token-exchange", "--endpoint", server.URL, "--subject-token-file", subject,
		"--cache-folder", filepath.Join(dir, name)}}
	if _, err := p.start(ctx); err != nil {
		return provider{}, fmt.Errorf("have a token kept (make build makes the programs): %w", err)
	}
	return p, nil
}

// startProviderRows are the rows of how long each start took, round by round.
func startProviderRows(small, whole, nothing []time.Duration) []row {
	over := make([]time.Duration, len(small))
	for i := range small {
		over[i] = small[i] - nothing[i]
	}
	p50 := func(list []time.Duration) float64 {
		return median(list, func(d time.Duration) float64 { return float64(d) / nanosecondsPerMilli })
	}
	const what = "provider with a kept token, start to end, p50: "
	return []row{
		{what: what + "credence-credential", unit: "ms", ours: p50(small), peer: "true", theirs: p50(nothing)},
		{what: what + "credence-credential, over true", unit: "ms", ours: p50(over), peer: "limit", theirs: p50([]time.Duration{startLimit}), target: atMost(1)},
		{what: what + "credence", unit: "ms", ours: p50(whole), peer: "true", theirs: p50(nothing)},
	}
}
