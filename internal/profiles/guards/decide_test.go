package guards

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	accounts "github.com/credence-id/credence/api/accounts/v1alpha1"
)

// Up to the limit the policy is evaluated with all profiles; beyond it with those that it can refuse by, and then with the older ones.
func TestProfilesLeftToTheWebhook(t *testing.T) {
	var profiles []accounts.ServiceAccountProfile
	for i := range accounts.PolicyProfiles + 2 {
		p := accounts.ServiceAccountProfile{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%02d", i), CreationTimestamp: metav1.NewTime(time.Unix(int64(i/2), 0))}}
		profiles = append(profiles, p)
	}
	slices.Reverse(profiles)
	if left := toWebhook(profiles[2:]); left.Len() > 0 {
		t.Errorf("as many as the limit: %v are left to the webhook", sets.List(left))
	}
	if left := toWebhook(profiles); !left.Equal(sets.New("p20", "p21")) {
		t.Errorf("%v are left to the webhook, want the two newest", sets.List(left))
	}
	profiles[0].Spec.Secrets = &accounts.ProfileSecrets{Allowed: []string{}}
	profiles[1].Spec.SecurityContext = &accounts.ProfileSecurityContext{Mode: accounts.ModeEnforce, TemplateRef: &accounts.TemplateReference{Name: "x"}}
	if left := toWebhook(profiles); !left.Equal(sets.New("p19", "p20")) {
		t.Errorf("%v are left to the webhook, want the newest that the policy refuses nothing by", sets.List(left))
	}
}

func TestEnforced(t *testing.T) {
	secrets := &accounts.ProfileSecrets{Allowed: []string{"tls"}}
	enforce := &accounts.ProfileSecurityContext{Mode: accounts.ModeEnforce}
	blocks := accounts.ServiceAccountProfileSpec{SecurityContext: &accounts.ProfileSecurityContext{Mode: accounts.ModeDefault}, OnChange: accounts.OnChangeBlockNew}
	template := &accounts.ProfileSecurityContext{Mode: accounts.ModeEnforce, TemplateRef: &accounts.TemplateReference{Name: "x"}}
	for name, test := range map[string]struct {
		spec                       accounts.ServiceAccountProfileSpec
		disabled, identities, left bool
		status                     metav1.ConditionStatus
		reason                     string
	}{
		"no label on the namespace": {spec: accounts.ServiceAccountProfileSpec{Secrets: secrets}, disabled: true, status: "False", reason: reasonNotEnabled},
		"defaults alone":            {spec: accounts.ServiceAccountProfileSpec{SecurityContext: &accounts.ProfileSecurityContext{Mode: accounts.ModeDefault}}, status: "True", reason: reasonNothingToRefuse},
		"defaults, and too many":    {left: true, status: "True", reason: reasonNothingToRefuse},
		"Secrets":                   {spec: accounts.ServiceAccountProfileSpec{Secrets: secrets}, status: "True", reason: reasonWebhookAndPolicy},
		"a context":                 {spec: accounts.ServiceAccountProfileSpec{SecurityContext: enforce}, status: "True", reason: reasonWebhookAndPolicy},
		"the label of identities":   {spec: accounts.ServiceAccountProfileSpec{Secrets: secrets}, identities: true, status: "True", reason: reasonWebhookAlone},
		"defaults that block":       {spec: blocks, status: "True", reason: reasonWebhookAndPolicy},
		"a context, and too many":   {spec: accounts.ServiceAccountProfileSpec{SecurityContext: enforce}, left: true, status: "True", reason: reasonWebhookAlone},
		"a template":                {spec: accounts.ServiceAccountProfileSpec{SecurityContext: template}, status: "True", reason: reasonWebhookAlone},
		"a template, and Secrets":   {spec: accounts.ServiceAccountProfileSpec{SecurityContext: template, Secrets: secrets}, status: "True", reason: reasonWebhookAndPolicy},
	} {
		got := enforced(&accounts.ServiceAccountProfile{Spec: test.spec}, !test.disabled, !test.identities, test.left)
		if got.Status != test.status || got.Reason != test.reason || got.Message == "" {
			t.Errorf("%s: %s %s %q, want %s %s", name, got.Status, got.Reason, got.Message, test.status, test.reason)
		}
	}
}
