package webhook

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
)

// pathsOfWebhooks are the paths at which reviews of webhooks are answered, by their names.
var pathsOfWebhooks = map[string]string{
	"default-pods.identity.credence.dev":       DefaultPodsPath,
	"pods.identity.credence.dev":               PodsPath,
	"default-pods.finished.credence.dev":       FinishedPath + DefaultPodsPath,
	"pods.finished.credence.dev":               FinishedPath + PodsPath,
	"profiles.finished.credence.dev":           FinishedPath + ProfilePodsPath,
	"secrets.identity.credence.dev":            SecretsPath,
	"templates.identity.credence.dev":          TemplatesPath,
	"serviceaccounts.identity.credence.dev":    ServiceAccountsPath,
	"profiles.identity.credence.dev":           ProfilePodsPath,
	"profile-templates.identity.credence.dev":  ProfileTemplatesPath,
	"quotas.identity.credence.dev":             QuotasPath,
	"expander.gmsa.credence.dev":               MutatePath,
	"authorizer.gmsa.credence.dev":             ValidatePath,
	"credentialspecs.gmsa.credence.dev":        CredentialSpecsPath,
	"templates.gmsa.credence.dev":              GMSATemplatesPath,
	"expander.gmsa-annotations.credence.dev":   MutatePath,
	"authorizer.gmsa-annotations.credence.dev": ValidatePath,
	"updates.gmsa-annotations.credence.dev":    ValidatePath,
	"templates.gmsa-annotations.credence.dev":  GMSATemplatesPath,
	"programs.gmsa-require-user.credence.dev":  ValidatePath,
	"templates.gmsa-require-user.credence.dev": GMSATemplatesPath,
	"revisions.gmsa-require-user.credence.dev": GMSATemplatesPath,
}

// PathOf returns the path of the reviews of a webhook by its name; empty where it is not answered here.
func PathOf(name string) string { return pathsOfWebhooks[name] }

// pathState is what a webhook configuration has of secret paths.
type pathState struct {
	current string // empty: its webhooks do not all have the same
	before  string // the value until since
	since   time.Time
}

// next returns what follows at a time, and whether that is something else. A since in the future is of a clock that was wrong.
func (s pathState) next(now time.Time, period time.Duration, secret func() string) (pathState, bool) {
	age := now.Sub(s.since)
	if s.current != "" && age < period && age > -overlap(period) {
		return s, false
	}
	return pathState{current: secret(), before: cmp.Or(s.current, s.before), since: now}, true
}

// answered are the secrets that are answered at a time.
func (s pathState) answered(now time.Time, period time.Duration) []string {
	var secrets []string
	if s.current != "" {
		secrets = append(secrets, s.current)
	}
	if s.before != "" && now.Sub(s.since) < overlap(period) {
		secrets = append(secrets, s.before)
	}
	return secrets
}

// overlap is for how long the secret of before is answered: an API server learns of another one by its watch.
func overlap(period time.Duration) time.Duration { return min(time.Minute, period/2) }

// pathsOf reads the state of a configuration; false where no webhook of it is answered here.
func pathsOf(configuration *unstructured.Unstructured) (pathState, bool) {
	annotations := configuration.GetAnnotations()
	var s pathState
	s.since, _ = time.Parse(time.RFC3339, annotations[v1alpha1.AnnotationReviewPathSince]) // unreadable: long ago
	if isSecret(annotations[v1alpha1.AnnotationReviewPathBefore]) {
		s.before = annotations[v1alpha1.AnnotationReviewPathBefore]
	}
	secrets := map[string]bool{}
	changePaths(configuration, func(path, reviews string) string {
		secret, ok := strings.CutSuffix(strings.TrimPrefix(path, "/"), reviews)
		if !ok || !isSecret(secret) {
			secret = ""
		}
		secrets[secret] = true
		return path
	})
	found := slices.DeleteFunc(slices.Collect(maps.Keys(secrets)), func(secret string) bool { return secret == "" })
	switch {
	case len(found) != 1:
		s.before = ""
	case len(secrets) == 1:
		s.current = found[0]
	default: // an upgrade has added a webhook: the others are called at their path until they have the next
		s.before = found[0]
	}
	return s, len(secrets) > 0
}

// write puts the state into a configuration.
func (s pathState) write(configuration *unstructured.Unstructured) {
	changePaths(configuration, func(_, reviews string) string { return "/" + s.current + reviews })
	annotations := configuration.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationReviewPathBefore], annotations[v1alpha1.AnnotationReviewPathSince] = s.before, s.since.UTC().Format(time.RFC3339)
	configuration.SetAnnotations(annotations)
}

// changePaths gives each webhook of a configuration that is answered here the path that change returns for the one that it has and
// the one of its reviews.
func changePaths(configuration *unstructured.Unstructured, change func(path, reviews string) string) {
	webhooks, _ := configuration.Object["webhooks"].([]any)
	for _, each := range webhooks {
		webhook, _ := each.(map[string]any)
		name, _ := webhook["name"].(string)
		reviews, ours := pathsOfWebhooks[name]
		client, _ := webhook["clientConfig"].(map[string]any)
		if !ours {
			continue
		}
		if service, ok := client["service"].(map[string]any); ok {
			path, _ := service["path"].(string)
			service["path"] = change(path, reviews)
		} else if text, ok := client["url"].(string); ok {
			if at, err := url.Parse(text); err == nil {
				at.Path = change(at.Path, reviews)
				client["url"] = at.String()
			}
		}
	}
}
