package webhook

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/admission/webhook"
)

// hook is what the two kinds of configuration have in common.
type hook struct {
	Name              string                                         `json:"name"`
	ClientConfig      admissionregistrationv1.WebhookClientConfig    `json:"clientConfig"`
	FailurePolicy     admissionregistrationv1.FailurePolicyType      `json:"failurePolicy"`
	SideEffects       admissionregistrationv1.SideEffectClass        `json:"sideEffects"`
	TimeoutSeconds    int                                            `json:"timeoutSeconds"`
	NamespaceSelector metav1.LabelSelector                           `json:"namespaceSelector"`
	ObjectSelector    metav1.LabelSelector                           `json:"objectSelector"`
	Rules             []admissionregistrationv1.RuleWithOperations   `json:"rules"`
	Reinvocation      admissionregistrationv1.ReinvocationPolicyType `json:"reinvocationPolicy"`
	MatchConditions   []admissionregistrationv1.MatchCondition       `json:"matchConditions"`

	Mutating bool `json:"-"`
}

func installed(t *testing.T) map[string]hook {
	t.Helper()
	objects, err := deploy.Manifests(deploy.GMSAAnnotations, deploy.GMSARequireUser)
	must(t, err)
	hooks := map[string]hook{}
	for _, object := range objects {
		if kind := object.GetKind(); kind != "MutatingWebhookConfiguration" && kind != "ValidatingWebhookConfiguration" {
			continue
		}
		var configuration struct {
			Webhooks []hook `json:"webhooks"`
		}
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"webhooks": object.Object["webhooks"]}, &configuration))
		for _, h := range configuration.Webhooks {
			h.Mutating = object.GetKind() == "MutatingWebhookConfiguration"
			hooks[h.Name] = h
		}
	}
	return hooks
}

// The installed configuration must send what this program answers, and fail as the concept states.
func TestTheConfigurationIsForThisProgram(t *testing.T) {
	hooks := installed(t)
	identities := map[string]string{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled}
	profiles := map[string]string{accounts.LabelNamespaceProfiles: accounts.NamespaceEnabled}
	for name, want := range map[string]struct {
		path               string
		policy             admissionregistrationv1.FailurePolicyType
		namespaces, labels map[string]string
		resources          []string
	}{
		"default-pods.identity.credence.dev":       {webhook.DefaultPodsPath, admissionregistrationv1.Fail, identities, nil, []string{"pods", "pods/ephemeralcontainers"}},
		"pods.identity.credence.dev":               {webhook.PodsPath, admissionregistrationv1.Fail, identities, nil, []string{"pods", "pods/ephemeralcontainers"}},
		"default-pods.finished.credence.dev":       {webhook.FinishedPath + webhook.DefaultPodsPath, admissionregistrationv1.Fail, identities, nil, []string{"pods", "pods/ephemeralcontainers"}},
		"pods.finished.credence.dev":               {webhook.FinishedPath + webhook.PodsPath, admissionregistrationv1.Fail, identities, nil, []string{"pods", "pods/ephemeralcontainers"}},
		"profiles.finished.credence.dev":           {webhook.FinishedPath + webhook.ProfilePodsPath, admissionregistrationv1.Fail, profiles, nil, []string{"pods", "pods/ephemeralcontainers"}},
		"secrets.identity.credence.dev":            {webhook.SecretsPath, admissionregistrationv1.Fail, nil, map[string]string{v1alpha1.LabelPurpose: v1alpha1.PurposeTokenRequestor}, []string{"secrets"}},
		"templates.identity.credence.dev":          {webhook.TemplatesPath, admissionregistrationv1.Ignore, identities, nil, []string{"deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "cronjobs"}},
		"serviceaccounts.identity.credence.dev":    {webhook.ServiceAccountsPath, admissionregistrationv1.Ignore, identities, nil, []string{"serviceaccounts"}},
		"profiles.identity.credence.dev":           {webhook.ProfilePodsPath, admissionregistrationv1.Fail, profiles, nil, []string{"pods", "pods/ephemeralcontainers"}},
		"profile-templates.identity.credence.dev":  {webhook.ProfileTemplatesPath, admissionregistrationv1.Ignore, profiles, nil, []string{"deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "cronjobs"}},
		"quotas.identity.credence.dev":             {webhook.QuotasPath, admissionregistrationv1.Fail, map[string]string{v1alpha1.LabelNamespaceQuotas: v1alpha1.NamespaceEnabled}, nil, []string{"shoots", "shoots/binding", "clusters"}},
		"expander.gmsa.credence.dev":               {webhook.MutatePath, admissionregistrationv1.Fail, nil, nil, []string{"pods", "pods/ephemeralcontainers"}},
		"authorizer.gmsa.credence.dev":             {webhook.ValidatePath, admissionregistrationv1.Fail, nil, nil, []string{"pods", "pods/ephemeralcontainers"}},
		"expander.gmsa-annotations.credence.dev":   {webhook.MutatePath, admissionregistrationv1.Fail, nil, nil, []string{"pods"}},
		"authorizer.gmsa-annotations.credence.dev": {webhook.ValidatePath, admissionregistrationv1.Fail, nil, nil, []string{"pods"}},
		"updates.gmsa-annotations.credence.dev":    {webhook.ValidatePath, admissionregistrationv1.Fail, nil, nil, []string{"pods", "pods/status", "pods/resize", "bindings", "pods/binding"}},
		"templates.gmsa-annotations.credence.dev":  {webhook.GMSATemplatesPath, admissionregistrationv1.Ignore, nil, nil, []string{"replicationcontrollers", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "cronjobs"}},
		"revisions.gmsa-require-user.credence.dev": {webhook.GMSATemplatesPath, admissionregistrationv1.Fail, nil, nil, []string{"controllerrevisions"}},
		"credentialspecs.gmsa.credence.dev":        {webhook.CredentialSpecsPath, admissionregistrationv1.Fail, nil, nil, []string{"gmsacredentialspecs"}},
		"programs.gmsa-require-user.credence.dev":  {webhook.ValidatePath, admissionregistrationv1.Fail, nil, nil, []string{"pods", "pods/ephemeralcontainers"}},
		"templates.gmsa-require-user.credence.dev": {webhook.GMSATemplatesPath, admissionregistrationv1.Fail, nil, nil, []string{"replicationcontrollers", "replicationcontrollers/scale", "deployments", "statefulsets", "daemonsets", "replicasets", "replicasets/scale", "jobs", "cronjobs"}},
		"templates.gmsa.credence.dev":              {webhook.GMSATemplatesPath, admissionregistrationv1.Ignore, nil, nil, []string{"replicationcontrollers", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs", "cronjobs"}},
	} {
		h, found := hooks[name]
		if !found {
			t.Errorf("%s is not installed", name)
			continue
		}
		var resources []string
		for _, rule := range h.Rules {
			resources = append(resources, rule.Resources...)
		}
		service := h.ClientConfig.Service
		sideEffects := admissionregistrationv1.SideEffectClassNone
		if want.path == webhook.QuotasPath {
			sideEffects = admissionregistrationv1.SideEffectClassNoneOnDryRun
		}
		if service == nil || service.Path == nil || *service.Path != want.path || webhook.PathOf(name) != want.path || h.FailurePolicy != want.policy || h.SideEffects != sideEffects ||
			!maps.Equal(h.NamespaceSelector.MatchLabels, want.namespaces) || !maps.Equal(h.ObjectSelector.MatchLabels, want.labels) || !slices.Equal(resources, want.resources) {
			t.Errorf("%s is not what it must be: %+v", name, h)
		}
		if h.Mutating != (h.Reinvocation == admissionregistrationv1.IfNeededReinvocationPolicy) {
			t.Errorf("%s: reinvocationPolicy %q", name, h.Reinvocation)
		}
		if strings.Contains(name, ".gmsa") && len(h.MatchConditions) == 0 {
			t.Errorf("%s has no match conditions: every pod of the cluster would be sent to it", name)
		}
		// Finished pods are reviewed where new ones are, whatever another webhook has removed.
		if kind, finished := strings.CutSuffix(name, ".finished.credence.dev"); finished {
			same := hooks[kind+".identity.credence.dev"]
			if !reflect.DeepEqual(h.NamespaceSelector, same.NamespaceSelector) || !reflect.DeepEqual(h.Rules, same.Rules) || len(h.MatchConditions) > 0 {
				t.Errorf("%s is called for other pods than %s.identity.credence.dev", name, kind)
			}
		}
	}
	if len(hooks) != 22 {
		t.Errorf("%d webhooks are installed, want 22", len(hooks))
	}
}

// Without client certificates the webhook writes the paths of all configurations, and its role names them.
func TestTheRoleOfReviewPathsNamesAllConfigurations(t *testing.T) {
	objects, err := deploy.Manifests(deploy.GMSAAnnotations, deploy.GMSARequireUser, deploy.ReviewPaths)
	must(t, err)
	installed, granted := map[string][]string{}, map[string][]string{}
	for _, object := range objects {
		switch kind := object.GetKind(); {
		case kind == "MutatingWebhookConfiguration" || kind == "ValidatingWebhookConfiguration":
			resource := strings.ToLower(kind) + "s"
			installed[resource] = append(installed[resource], object.GetName())
		case object.GetName() == "credence:webhook:review-paths" && kind == "ClusterRole":
			var role rbacv1.ClusterRole
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
			for _, rule := range role.Rules {
				granted[rule.Resources[0]] = rule.ResourceNames
			}
		}
	}
	if answered := webhook.Configurations(); !reflect.DeepEqual(answered, installed) || !reflect.DeepEqual(answered, granted) {
		t.Errorf("answered %v, installed %v, granted %v", answered, installed, granted)
	}
}

// One webhook is called for the pods of a namespace with identities, whatever its label for how tokens come to pods has.
func TestOneWebhookForPods(t *testing.T) {
	hooks := installed(t)
	for _, label := range []string{"", v1alpha1.DeliverySecret, v1alpha1.DeliveryCSI, "vault"} {
		namespace, want := labels.Set{v1alpha1.LabelNamespaceIdentities: v1alpha1.NamespaceEnabled}, "default-pods.identity.credence.dev"
		if label != "" {
			namespace[v1alpha1.LabelNamespaceDelivery], want = label, "pods.identity.credence.dev"
		}
		for _, name := range []string{"default-pods.identity.credence.dev", "pods.identity.credence.dev"} {
			of := hooks[name].NamespaceSelector
			selector, err := metav1.LabelSelectorAsSelector(&of)
			must(t, err)
			if selector.Matches(namespace) != (name == want) {
				t.Errorf("label %q: want %s called alone: %s", label, want, selector)
			}
		}
	}
}
