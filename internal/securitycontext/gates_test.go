package securitycontext_test

import (
	"encoding/json"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/credence-id/credence/internal/securitycontext"
)

// everywhere is a spec that uses all fields in all places; each call makes a new one.
func everywhere() *corev1.PodSpec {
	sc := func() *corev1.SecurityContext {
		return &corev1.SecurityContext{RunAsNonRoot: new(true), WindowsOptions: windows(corev1.WindowsSecurityContextOptions{
			GMSACredentialSpecName: new("name"), GMSACredentialSpec: new("{}"), RunAsUserName: new("user"), HostProcess: new(false)})}
	}
	return &corev1.PodSpec{
		SecurityContext:     &corev1.PodSecurityContext{WindowsOptions: sc().WindowsOptions},
		InitContainers:      []corev1.Container{{SecurityContext: sc()}},
		Containers:          []corev1.Container{{SecurityContext: sc()}, {SecurityContext: sc()}},
		EphemeralContainers: []corev1.EphemeralContainer{ephemeral(sc())},
	}
}

// without is a spec whose windowsOptions, wherever they are, lack the JSON keys: another form of DropDisabled.
func without(t *testing.T, spec *corev1.PodSpec, keys ...string) *corev1.PodSpec {
	t.Helper()
	document, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(document, &tree); err != nil {
		t.Fatal(err)
	}
	var remove func(any)
	remove = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, below := range v {
				if options, ok := below.(map[string]any); ok && name == "windowsOptions" {
					for _, key := range keys {
						delete(options, key)
					}
				}
				remove(below)
			}
		case []any:
			for _, below := range v {
				remove(below)
			}
		}
	}
	remove(tree)
	if document, err = json.Marshal(tree); err != nil {
		t.Fatal(err)
	}
	var left *corev1.PodSpec
	if err := json.Unmarshal(document, &left); err != nil {
		t.Fatal(err)
	}
	return left
}

// keysOf are the fields that gates which are off govern.
func keysOf(gates securitycontext.Gates) []string {
	var off []string
	if !gates.WindowsGMSA {
		off = append(off, "gmsaCredentialSpecName", "gmsaCredentialSpec")
	}
	if !gates.WindowsRunAsUserName {
		off = append(off, "runAsUserName")
	}
	if !gates.WindowsHostProcess {
		off = append(off, "hostProcess")
	}
	return off
}

// allGates are the eight ways to set three gates.
func allGates() []securitycontext.Gates {
	var all []securitycontext.Gates
	for i := range 8 {
		all = append(all, securitycontext.Gates{WindowsGMSA: i&1 != 0, WindowsRunAsUserName: i&2 != 0, WindowsHostProcess: i&4 != 0})
	}
	return all
}

func TestDropDisabledOnCreate(t *testing.T) {
	for _, gates := range allGates() {
		pod := everywhere()
		securitycontext.DropDisabled(gates, pod, nil)
		if diff := cmp.Diff(without(t, everywhere(), keysOf(gates)...), pod); diff != "" {
			t.Errorf("%+v: the remaining spec (-want +got):\n%s", gates, diff)
		}
	}
}

// An old object keeps a field where it is used by any part of it, whatever the value, and only that gate's fields.
func TestDropDisabledOnUpdate(t *testing.T) {
	type options = corev1.WindowsSecurityContextOptions
	places := map[string]func(o options) *corev1.PodSpec{
		"pod": func(o options) *corev1.PodSpec {
			return &corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{WindowsOptions: &o}}
		},
		"init container": func(o options) *corev1.PodSpec {
			return &corev1.PodSpec{InitContainers: []corev1.Container{{}, {SecurityContext: withOptions(o)}}}
		},
		"container": func(o options) *corev1.PodSpec {
			return &corev1.PodSpec{Containers: []corev1.Container{{SecurityContext: &corev1.SecurityContext{}}, {SecurityContext: withOptions(o)}}}
		},
		"ephemeral container": func(o options) *corev1.PodSpec {
			return &corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{ephemeral(nil), ephemeral(withOptions(o))}}
		},
	}
	for name, tt := range map[string]struct {
		old  options
		lost []string
	}{
		"nothing":      {options{}, keysOf(securitycontext.Gates{})},
		"name":         {options{GMSACredentialSpecName: new("other")}, keysOf(securitycontext.Gates{WindowsGMSA: true})},
		"contents":     {options{GMSACredentialSpec: new("")}, keysOf(securitycontext.Gates{WindowsGMSA: true})},
		"user":         {options{RunAsUserName: new("")}, keysOf(securitycontext.Gates{WindowsRunAsUserName: true})},
		"host process": {options{HostProcess: new(false)}, keysOf(securitycontext.Gates{WindowsHostProcess: true})},
	} {
		for place, in := range places {
			t.Run(name+" in "+place, func(t *testing.T) {
				pod, old := everywhere(), in(tt.old)
				securitycontext.DropDisabled(securitycontext.Gates{}, pod, old)
				if diff := cmp.Diff(without(t, everywhere(), tt.lost...), pod); diff != "" {
					t.Errorf("the remaining spec (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(in(tt.old), old); diff != "" {
					t.Errorf("the old spec changed (-before +after):\n%s", diff)
				}
			})
		}
	}
}

func TestDropDisabledLeavesStructures(t *testing.T) {
	pod := &corev1.PodSpec{Containers: []corev1.Container{{SecurityContext: withOptions(corev1.WindowsSecurityContextOptions{RunAsUserName: new("user")})}}}
	securitycontext.DropDisabled(securitycontext.Gates{}, pod, nil)
	if diff := cmp.Diff(&corev1.PodSpec{Containers: []corev1.Container{{SecurityContext: withOptions(corev1.WindowsSecurityContextOptions{})}}}, pod); diff != "" {
		t.Errorf("the remaining spec (-want +got):\n%s", diff)
	}
}

func TestDropDisabledOfNoPod(t *testing.T) {
	securitycontext.DropDisabled(securitycontext.Gates{}, nil, everywhere())
	securitycontext.DropDisabled(securitycontext.Gates{}, nil, nil)
}

// Dropping twice is dropping once; a stored object never loses anything; nothing but the gates' fields changes.
func TestDropDisabledProperties(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		gates := allGates()[r.Intn(8)]
		pod, old := arbitrarySpec(r), arbitrarySpec(r)
		original, oldBefore := pod.DeepCopy(), old.DeepCopy()

		securitycontext.DropDisabled(gates, pod, old)
		if diff := cmp.Diff(oldBefore, old); diff != "" {
			t.Fatalf("seed %d: the old spec changed (-before +after):\n%s", seed, diff)
		}
		all := keysOf(securitycontext.Gates{})
		if diff := cmp.Diff(without(t, original, all...), without(t, pod, all...)); diff != "" {
			t.Fatalf("seed %d: more than windowsOptions changed (-before +after):\n%s", seed, diff)
		}
		again := pod.DeepCopy()
		securitycontext.DropDisabled(gates, again, old)
		if diff := cmp.Diff(pod, again); diff != "" {
			t.Fatalf("seed %d: a second time changes something (-once +twice):\n%s", seed, diff)
		}
		securitycontext.DropDisabled(securitycontext.Gates{}, old, old)
		if diff := cmp.Diff(oldBefore, old); diff != "" {
			t.Fatalf("seed %d: an update without a change changes something (-before +after):\n%s", seed, diff)
		}
	}
}

func arbitrarySpec(r *rand.Rand) *corev1.PodSpec {
	spec := &corev1.PodSpec{SecurityContext: arbitrary[*corev1.PodSecurityContext](r)}
	for range r.Intn(3) {
		spec.InitContainers = append(spec.InitContainers, corev1.Container{SecurityContext: arbitrary[*corev1.SecurityContext](r)})
		spec.Containers = append(spec.Containers, corev1.Container{SecurityContext: arbitrary[*corev1.SecurityContext](r)})
		spec.EphemeralContainers = append(spec.EphemeralContainers, ephemeral(arbitrary[*corev1.SecurityContext](r)))
	}
	return spec
}
