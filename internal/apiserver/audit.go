package apiserver

import (
	"fmt"
	"os"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/options"
)

// defaultAuditPolicy records each change of an identity and its user, with the identity's content but without a token.
const defaultAuditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*", "/openapi/*", "/apis", "/apis/*"]
- level: Metadata
  resources: [{group: authentication.gardener.cloud, resources: [workloadidentities/token, workloadidentities/selftoken, credentialsbindings/data]}, {group: identity.credence.dev, resources: [quotareviews]}]
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
  resources: [{group: authentication.gardener.cloud}, {group: identity.credence.dev}]
- level: Metadata
`

// DefaultAuditPolicy completes audit options that have a log but no policy. The function returned removes the file that
// this takes; call it once the options have been applied.
func DefaultAuditPolicy(opts *options.AuditOptions) (func(), error) {
	if opts.PolicyFile != "" {
		return func() {}, nil
	}
	file, err := os.CreateTemp("", "credence-audit-policy-*.yaml")
	if err != nil {
		return nil, fmt.Errorf("write default audit policy: %w", err)
	}
	remove := func() { _ = os.Remove(file.Name()) }
	_, err = file.WriteString(defaultAuditPolicy)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		remove()
		return nil, fmt.Errorf("write default audit policy: %w", err)
	}
	opts.PolicyFile = file.Name()
	return remove, nil
}

// CapAudit returns the given policy, except that requests for tokens, and for data of Secrets, are never recorded above level
// Metadata: their answers hold it.
func CapAudit(policy audit.PolicyRuleEvaluator) audit.PolicyRuleEvaluator {
	if policy == nil {
		return nil
	}
	return cappedPolicy{policy}
}

type cappedPolicy struct{ audit.PolicyRuleEvaluator }

// EvaluatePolicyRule implements audit.PolicyRuleEvaluator.
func (p cappedPolicy) EvaluatePolicyRule(attributes authorizer.Attributes) audit.RequestAuditConfig {
	config := p.PolicyRuleEvaluator.EvaluatePolicyRule(attributes)
	if attributes.GetAPIGroup() == v1alpha1.GroupName && givesCredentials(attributes.GetResource(), attributes.GetSubresource()) && auditinternal.LevelMetadata.Less(config.Level) {
		config.Level = auditinternal.LevelMetadata
	}
	return config
}

// givesCredentials reports whether answers of a subresource hold tokens or data of Secrets.
func givesCredentials(resource, subresource string) bool {
	return resource == "workloadidentities" && (subresource == "token" || subresource == "selftoken") || resource == "credentialsbindings" && subresource == "data"
}
