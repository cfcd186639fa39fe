package renew

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/inventory"
	"github.com/credence-id/credence/internal/wording"
)

// The verdicts.
const (
	renewed   = "renewed"   // every Secret has a new token
	requested = "requested" // it is not seen whether all have
)

// Result is what became of a request for new tokens.
type Result struct {
	Object  string `json:"object"`
	Verdict string `json:"verdict"`
	// Clusters are the WorkloadClusters that a context object is on.
	Clusters []string `json:"clusters,omitempty"`
	// Secrets are those that are seen.
	Secrets []Secret `json:"secrets"`
	// Elsewhere is true if there may be Secrets that are not seen.
	Elsewhere bool     `json:"elsewhere,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	// None is true if no Secret carries a token of the identity.
	None bool `json:"none,omitempty"`
	// Refused is true if the user may not request some of the tokens.
	Refused bool `json:"refused,omitempty"`
}

// Secret is one that carries a token.
type Secret struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Renewed is true if it has another token than before.
	Renewed bool `json:"renewed"`
	// LastFailure is the newest Warning on a Secret that was not renewed, where the user may read Events.
	LastFailure *inventory.Warning `json:"lastFailure,omitempty"`
}

// done reports whether all is seen, and renewed.
func (result *Result) done() bool {
	return !result.Elsewhere && !result.Refused && len(result.Secrets) > 0 && !slices.ContainsFunc(result.Secrets, func(s Secret) bool { return !s.Renewed })
}

// reasons finds out why Secrets have no new token.
func (r *renew) reasons(ctx context.Context, workload *cluster.API, result *Result) {
	for i := range result.Secrets {
		secret := &result.Secrets[i]
		if r.timeout == 0 || secret.Renewed {
			continue
		}
		about := cluster.Listing{Namespace: secret.Namespace, Resource: "events", Fields: "type=Warning,involvedObject.kind=Secret,involvedObject.name=" + secret.Name}
		if err := cluster.Each(ctx, workload, about, func(e *corev1.Event) { secret.LastFailure = inventory.Newer(secret.LastFailure, e) }); err != nil {
			result.Notes = append(result.Notes, fmt.Sprintf("why Secret %s/%s has no new token is not seen: %v", secret.Namespace, secret.Name, err))
		}
	}
}

// report prints a result.
func (r *renew) report(result *Result) error {
	result.Verdict = requested
	if result.done() {
		result.Verdict = renewed
	}
	if result.Secrets == nil {
		result.Secrets = []Secret{}
	}
	if r.output == "text" {
		if _, err := io.WriteString(r.Out, wording.Printable(result.text())); err != nil {
			return err
		}
	} else if err := screen.Object(r.Out, r.output, result); err != nil {
		return err
	}
	switch {
	case result.Refused:
		return &command.Failure{Code: command.ExitRefused}
	case r.timeout > 0 && slices.ContainsFunc(result.Secrets, func(s Secret) bool { return !s.Renewed }):
		return &command.Failure{
			Line: fmt.Sprintf("error: not every Secret has a new token within %s", r.timeout),
			Hint: "the request stays; asking again within seconds takes longer each time", Code: command.ExitOutage,
		}
	}
	return nil
}

func (result *Result) text() string {
	var text strings.Builder
	summary := "new tokens were requested, and all Secrets have them"
	switch {
	case result.None:
		summary = "nothing to renew"
	case result.Verdict == requested:
		summary = "new tokens were requested"
	}
	fmt.Fprintf(&text, "%s: %s\n", wording.OneLine(result.Object), summary)
	for _, secret := range result.Secrets {
		what := requested
		if secret.Renewed {
			what = renewed
		}
		if secret.LastFailure != nil {
			secret.Name += fmt.Sprintf(": last failure %s: %s: %s", secret.LastFailure.Time.UTC().Format(time.RFC3339), secret.LastFailure.Reason, secret.LastFailure.Message)
		}
		fmt.Fprintf(&text, "  %-9s Secret %s/%s\n", what, wording.OneLine(secret.Namespace), wording.OneLine(secret.Name))
	}
	if result.Elsewhere {
		fmt.Fprintf(&text, "  %-9s what is in other clusters than that of the kubeconfig; the object is on %s\n", "not seen", wording.OneLine(wording.OrDash(strings.Join(result.Clusters, ", "))))
	}
	for _, note := range result.Notes {
		fmt.Fprintf(&text, "  %-9s %s\n", "note", wording.OneLine(note))
	}
	return text.String()
}
