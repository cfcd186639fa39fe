package gmsa_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	registrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/credence-id/credence/test/testkit/policies"
)

// cartUses is an authorizer by which the service account cart of namespace shop may use the objects a and b.
type cartUses struct{}

func (cartUses) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == "system:serviceaccount:shop:cart" && a.GetVerb() == "use" && a.GetResource() == "gmsacredentialspecs" && a.GetAPIGroup() == "windows.k8s.io" && (a.GetName() == "a" || a.GetName() == "b") {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// generatedPod is a pod that has names and contents in some of its places.
func generatedPod(r *rand.Rand) string {
	options := func(odds int) string {
		if r.IntN(odds) > 0 {
			return ""
		}
		fields := []string{"gmsaCredentialSpecName: a, gmsaCredentialSpec: x", "gmsaCredentialSpecName: a, gmsaCredentialSpec: x", "gmsaCredentialSpecName: b, gmsaCredentialSpec: x", "gmsaCredentialSpecName: c, gmsaCredentialSpec: x", "gmsaCredentialSpecName: a", "gmsaCredentialSpec: x", "gmsaCredentialSpecName: '', gmsaCredentialSpec: ''", "hostProcess: false"}
		return ", securityContext: {windowsOptions: {" + fields[r.IntN(len(fields))] + "}}"
	}
	of := "serviceAccountName: " + []string{"cart", "cart", "cart", "till", "''"}[r.IntN(5)] + options(1)
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		if list == "containers" || r.IntN(3) == 0 {
			of += ", " + list + ": [{name: " + strings.ToLower(list[:1]) + options(6) + "}]"
		}
	}
	return "{metadata: {name: p}, spec: {" + of + "}}"
}

// The condition of the policy leaves over each pod that its expressions refuse, of new ones and of those that get an ephemeral container.
func TestPodsInDoubtAreAllThatAreRefused(t *testing.T) {
	shipped := policies.Shipped(t, "credence-gmsa")
	all := shipped.DeepCopy()
	all.Spec.MatchConditions = []registrationv1.MatchCondition{{Name: "all", Expression: "true"}}
	quick, thorough := policies.Compile(t, shipped), policies.Compile(t, all)
	r := rand.New(rand.NewPCG(1, 2))
	counts := map[string]int{}
	for i := range 1000 {
		pod := generatedPod(r)
		request := policies.Request{User: "jane", Pod: policies.Pod(t, pod), Authorizer: cartUses{}}
		if i%3 == 0 {
			request.Before = request.Pod.DeepCopy()
			request.Before.Spec.EphemeralContainers = nil
		}
		got, want := quick.Decide(request), thorough.Decide(request)
		if policies.Refused(got) != policies.Refused(want) {
			t.Fatalf("pod %s, changed %t: %+v, and without the condition %+v", pod, request.Before != nil, got.Decisions, want.Decisions)
		}
		counts[fmt.Sprintf("refused %t, left out %t", policies.Refused(want), len(got.Decisions) == 0)]++
	}
	for _, what := range []string{"refused true, left out false", "refused false, left out true", "refused false, left out false"} {
		if counts[what] < 30 {
			t.Errorf("%d of 1000 pods: %s, which is too few to show something: %v", counts[what], what, counts)
		}
	}
}

// BenchmarkPolicyOfPods is what the evaluation costs for a pod that names an object, and for one without any.
func BenchmarkPolicyOfPods(b *testing.B) {
	policy := policies.Compile(b, policies.Shipped(b, "credence-gmsa"))
	for what, context := range map[string]string{"gmsa": "windowsOptions: {gmsaCredentialSpecName: a, gmsaCredentialSpec: x}", "none": "runAsNonRoot: true"} {
		request := policies.Request{User: "jane", Authorizer: cartUses{}, Pod: policies.Pod(b, `{metadata: {name: p}, spec: {serviceAccountName: cart, securityContext: {`+context+`}, containers: [{name: a, image: a}, {name: b, image: a}]}}`)}
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if policies.Refused(policy.Decide(request)) {
					b.Fatal("refused")
				}
			}
		})
	}
}
