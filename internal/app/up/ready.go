//go:build unix

package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// startLimit is how long one component may take to be ready: a cold start on a slow, busy machine.
	startLimit = 5 * time.Minute
	readyEvery = 50 * time.Millisecond
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 64 << 10
)

// ask returns nil if a component reports ready, else its answer.
func ask(ctx context.Context, client *http.Client, url string) error {
	_, err := fetch(ctx, client, url)
	return err
}

func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s%s", url, response.Status, failedChecks(string(body)))
	}
	return body, nil
}

// failedChecks picks the lines of a Kubernetes readyz answer that tell what is missing.
func failedChecks(body string) string {
	var failed []string
	for line := range strings.Lines(body) {
		if check, isFailed := strings.CutPrefix(line, "[-]"); isFailed {
			name, _, _ := strings.Cut(check, " ")
			failed = append(failed, name)
		}
	}
	if len(failed) == 0 {
		return ""
	}
	return " (not ready: " + strings.Join(failed, ", ") + ")"
}

// poll repeats do until it succeeds, limit has passed or ctx is done; the error has the last one of do, but not that the limit has ended it.
func poll(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	var last error
	for {
		err := do(limited)
		if err == nil {
			return nil
		}
		if last == nil || limited.Err() == nil {
			last = err
		}
		select {
		case <-ticker.C:
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("not done after %s: %w", limit, last)
		}
	}
}

var errInterrupted = errors.New("interrupted: everything that was started has been stopped")
