package workloadidentity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/internal/wording"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	audiencesPath      = specPath.Child("audiences")
	providerConfigPath = targetPath.Child("providerConfig")
)

// validateSubject checks that the target system accepts the sub claim, which never changes after creation.
func validateSubject(wi *v1alpha1.WorkloadIdentity) field.ErrorList {
	subject, err := identity.NewSubject(wi.Namespace, wi.Name, string(wi.UID))
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), wi.Name, err.Error())}
	}
	kind := wi.Spec.TargetSystem.Type
	limit := targets.For(kind).Limits().Subject
	if limit == 0 || len(subject) <= limit {
		return nil
	}
	names := len(wi.Namespace) + len(wi.Name)
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), wi.Name, fmt.Sprintf(
		"the sub claim would be %d bytes long, %s accepts at most %d: namespace and name have %d characters together, at most %d fit",
		len(subject), kind, limit, names, limit-(len(subject)-names)))}
}

// validateAccepted checks that the target system accepts the audiences, which are right otherwise.
func validateAccepted(audiences []string, kind string) field.ErrorList {
	limits := targets.For(kind).Limits()
	var errs field.ErrorList
	if limits.Audiences > 0 && len(audiences) > limits.Audiences {
		errs = append(errs, field.Invalid(audiencesPath, len(audiences), fmt.Sprintf("%s accepts at most %d audiences", kind, limits.Audiences)))
	}
	for i, audience := range audiences {
		if n := utf8.RuneCountInString(audience); limits.Audience > 0 && n > limits.Audience {
			errs = append(errs, field.Invalid(audiencesPath.Index(i), wording.Abbreviate(audience), fmt.Sprintf("is %d characters long, %s accepts at most %d", n, kind, limits.Audience)))
		}
	}
	return errs
}

// parse returns the configuration of an identity, or nil.
func parse(system v1alpha1.TargetSystem) (target.Config, field.ErrorList) {
	if system.ProviderConfig == nil {
		return nil, nil
	}
	return targets.For(system.Type).Parse(system.ProviderConfig.Raw, providerConfigPath)
}

// validateAccount checks that the new configuration is of the same account as the old one: a tenant, a subscription and a
// project never change, nor do they go away, once they are set. A user who may write an identity, and not use it, must not have its tokens sent to
// a host of their choice.
func validateAccount(config, old target.Config) field.ErrorList {
	var errs field.ErrorList
	for _, moved := range target.Moved(old, config) {
		errs = append(errs, field.Invalid(moved.Path, moved.Is, fmt.Sprintf("is immutable once set: it was %s; another account is another identity", moved.Was)))
	}
	for _, host := range target.Hosts(old, config) {
		errs = append(errs, field.Invalid(host.Path, host.Value, "can be set only when the identity is created, as its tokens are sent there: create another identity"))
	}
	return errs
}

// sameConfig reports whether two configurations mean the same, whatever the order of their fields.
func sameConfig(system, old v1alpha1.TargetSystem) bool {
	if system.ProviderConfig == nil || old.ProviderConfig == nil {
		return system.ProviderConfig == nil && old.ProviderConfig == nil
	}
	var values [2]any
	for i, raw := range [][]byte{system.ProviderConfig.Raw, old.ProviderConfig.Raw} {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&values[i]); err != nil {
			return bytes.Equal(system.ProviderConfig.Raw, old.ProviderConfig.Raw)
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}

// warnings are what is right, but will hardly do.
func warnings(spec v1alpha1.WorkloadIdentitySpec) []string {
	kind := spec.TargetSystem.Type
	if spec.TargetSystem.ProviderConfig == nil {
		if _, errs := targets.For(kind).Parse(nil, providerConfigPath); len(errs) > 0 {
			return []string{fmt.Sprintf("%s: is not set: workloads are given tokens, but no configuration for %s", providerConfigPath, kind)}
		}
		return nil
	}
	config, errs := parse(spec.TargetSystem)
	if len(errs) > 0 {
		return nil // an identity from before these checks
	}
	var warned []string
	if warner, ok := config.(target.Warner); ok {
		warned = warner.Warnings()
	}
	if untrusted := targets.For(kind).Limits().Untrusted; untrusted != nil {
		for i, audience := range spec.Audiences {
			if wrong := untrusted(audience); wrong != "" {
				warned = append(warned, fmt.Sprintf("%s: %q %s", audiencesPath.Index(i), wording.Abbreviate(audience), wrong))
			}
		}
	}
	expected := config.Audiences()
	if len(expected) > 0 && !slices.ContainsFunc(expected, func(audience string) bool { return slices.Contains(spec.Audiences, audience) }) {
		warned = append(warned, fmt.Sprintf("%s: unless %s was set up otherwise, it expects %s", audiencesPath, kind, strings.Join(expected, " or ")))
	}
	return warned
}
