package tokensecret

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/wording"
)

// RequesterAnnotations are those that hold the user who has a Secret filled.
func RequesterAnnotations() []string {
	return []string{v1alpha1.AnnotationRequester, v1alpha1.AnnotationRequesterUID, v1alpha1.AnnotationRequesterGroups, v1alpha1.AnnotationRequesterExtra}
}

// maxRequester bounds the annotations together; all annotations of an object may have 256 KiB.
const maxRequester = 64 << 10

// Lines separate groups, and keys of extra; tabs the values of a key. The policy credence-token-secrets compares the annotations
// with a request by the same rules.
const (
	lineBreak = "\n"
	tab       = "\t"
)

// FormatRequester writes the annotations that hold a user; those without a value are left out.
func FormatRequester(user authority.Subject) (map[string]string, error) {
	for _, group := range user.Groups {
		if strings.Contains(group, lineBreak) {
			return nil, fmt.Errorf("the group %q of user %q has a line break", wording.Abbreviate(group), wording.Abbreviate(user.Name))
		}
	}
	var extra []string
	for _, key := range slices.Sorted(maps.Keys(user.Extra)) {
		line := key + "=" + strings.Join(user.Extra[key], tab)
		if strings.Contains(key, "=") || strings.Contains(line, lineBreak) || strings.Count(line, tab) >= max(1, len(user.Extra[key])) {
			return nil, fmt.Errorf("the extra value %q of user %q has a line break, a tab, or = in its name", wording.Abbreviate(key), wording.Abbreviate(user.Name))
		}
		extra = append(extra, line)
	}
	annotations := map[string]string{
		v1alpha1.AnnotationRequester:       user.Name,
		v1alpha1.AnnotationRequesterUID:    user.UID,
		v1alpha1.AnnotationRequesterGroups: strings.Join(user.Groups, lineBreak),
		v1alpha1.AnnotationRequesterExtra:  strings.Join(extra, lineBreak),
	}
	size := 0
	for annotation, value := range annotations {
		if size += len(value); value == "" {
			delete(annotations, annotation)
		}
	}
	if size > maxRequester {
		return nil, fmt.Errorf("user %q has %d groups; with them it takes %d bytes, and at most %d can be kept on a Secret", wording.Abbreviate(user.Name), len(user.Groups), size, maxRequester)
	}
	return annotations, nil
}

// Requester returns the annotations of an object that hold the user who has it filled.
func Requester(object metav1.Object) map[string]string {
	found := map[string]string{}
	for _, annotation := range RequesterAnnotations() {
		if value := object.GetAnnotations()[annotation]; value != "" {
			found[annotation] = value
		}
	}
	return found
}

// RequestedBy returns the user who has a Secret filled; false without one, as in Secrets that were labelled before users were recorded.
func RequestedBy(object metav1.Object) (authority.Subject, bool) {
	annotations := Requester(object)
	if len(annotations) == 0 {
		return authority.Subject{}, false
	}
	user := authority.Subject{Name: annotations[v1alpha1.AnnotationRequester], UID: annotations[v1alpha1.AnnotationRequesterUID]}
	if groups := annotations[v1alpha1.AnnotationRequesterGroups]; groups != "" {
		user.Groups = strings.Split(groups, lineBreak)
	}
	if extra := annotations[v1alpha1.AnnotationRequesterExtra]; extra != "" {
		user.Extra = map[string][]string{}
		for line := range strings.SplitSeq(extra, lineBreak) {
			key, values, _ := strings.Cut(line, "=")
			user.Extra[key] = strings.Split(values, tab)
		}
	}
	return user, true
}
