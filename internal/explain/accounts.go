package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/authority"
	"github.com/credence-id/credence/internal/decision"
	"github.com/credence-id/credence/internal/gmsa"
	"github.com/credence-id/credence/internal/gmsa/lint"
	"github.com/credence-id/credence/internal/securitycontext"
)

// Accounts is what becomes of the accounts of a pod.
type Accounts struct {
	Kind           string `json:"kind"`
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
	ServiceAccount string `json:"serviceAccount"`
	// Verdict is admitted, refused, or unaffected where the pod names no credential spec.
	Verdict string `json:"verdict"`
	// Code and Reason are those of the refusal, Others further reasons for it.
	Code            int32            `json:"code,omitempty"`
	Reason          string           `json:"reason,omitempty"`
	Others          []string         `json:"others,omitempty"`
	CredentialSpecs []CredentialSpec `json:"credentialSpecs"`
	Containers      []Account        `json:"containers"`
	Notes           []string         `json:"notes,omitempty"`
}

// CredentialSpec is a GMSACredentialSpec that a pod names.
type CredentialSpec struct {
	Name string `json:"name"`
	// Use is allowed, denied, or unknown if it could not be reviewed.
	Use string `json:"use"`
	// Source is a file, or the cluster; "" where it is not known whether there is such an object.
	Source string `json:"source,omitempty"`
	// Missing is true if there is no such object.
	Missing bool `json:"missing,omitempty"`
	// Account is what containers are, as DOMAIN\name.
	Account string `json:"account,omitempty"`
	// Contents are what is filled in.
	Contents string   `json:"contents,omitempty"`
	Findings []string `json:"findings,omitempty"`
}

// Account is what one container gets.
type Account struct {
	// Name and Kind of the container: container, init container, ephemeral container, or sandbox.
	Name string `json:"name,omitempty"`
	Kind string `json:"kind"`
	// CredentialSpec is the name, and From the field that sets it.
	CredentialSpec string `json:"credentialSpec,omitempty"`
	From           string `json:"from,omitempty"`
	// Contents are handed to the runtime: through CRI as credential_spec, in the OCI specification as windows.credentialSpec, a
	// string in both.
	Contents string `json:"contents,omitempty"`
	// ContentsUnknown is true if there will be contents that are not known here.
	ContentsUnknown bool `json:"contentsUnknown,omitempty"`
	// UserName is the user that the runtime is configured to run as; "" is the user of the image.
	UserName    string `json:"userName,omitempty"`
	HostProcess bool   `json:"hostProcess,omitempty"`
}

// WindowsAccounts finds out what becomes of the GMSACredentialSpecs that a pod names, by the rules of the webhook.
func WindowsAccounts(ctx context.Context, facts *Facts, subject Subject) (*Accounts, error) {
	x := &Accounts{
		Kind: subject.kind, Namespace: subject.namespace, Name: subject.name, ServiceAccount: subject.pod.Spec.ServiceAccountName,
		Verdict: Unaffected, CredentialSpecs: []CredentialSpec{}, Containers: []Account{},
	}
	x.noteAnnotations(subject.pod)
	references := gmsa.References(subject.pod, false)
	pod := subject.pod
	if len(references) > 0 {
		x.Verdict = Admitted
		specs, unknown := x.decide(ctx, facts, references)
		uses := map[string]authority.Answer{}
		for name := range specs { // whether it may is decided already
			uses[name] = authority.Answer{Allowed: true}
		}
		for name := range unknown {
			specs[name] = gmsa.Spec{Exists: true, Contents: unknownContents}
		}
		if filled := gmsa.Expand(gmsa.Request{ServiceAccount: x.ServiceAccount, References: references, Specs: specs, Uses: uses}); filled.Denial == nil {
			changed, err := decision.Applied(pod, filled.Patch)
			if err != nil {
				return nil, err
			}
			pod = changed
		}
	}
	x.refusedByServer(subject.pod)
	if len(references) > 0 {
		x.containers(pod)
	}
	x.Notes = append(x.Notes, facts.notes...)
	return x, nil
}

// unknownContents hold the place of contents that could not be read. The webhook never fills in an object without keys.
const unknownContents = "{}"

// decide lets the rules of the webhook decide, and returns what is known of each name.
func (x *Accounts) decide(ctx context.Context, facts *Facts, references []gmsa.Reference) (specs map[string]gmsa.Spec, unknown map[string]bool) {
	specs, unknown = map[string]gmsa.Spec{}, map[string]bool{}
	names, denial := gmsa.Names(references)
	if denial != nil {
		x.refuse(denial)
		return specs, unknown
	}
	uses := map[string]authority.Answer{}
	for _, name := range names {
		in := CredentialSpec{Name: name, Use: "unknown"}
		uses[name] = authority.Answer{Allowed: true}
		if x.ServiceAccount != "" {
			if use := facts.use(ctx, x.Namespace, x.ServiceAccount, name); use.known {
				uses[name], in.Use = use.Answer, "denied"
				if use.Allowed {
					in.Use = "allowed"
				}
			}
		}
		spec, known := facts.spec(ctx, name)
		if specs[name] = spec; known {
			in.Source, in.Missing = facts.sources[name], !spec.Exists
			in.judge(spec)
		} else {
			unknown[name] = true
		}
		x.CredentialSpecs = append(x.CredentialSpecs, in)
	}
	x.refuse(gmsa.Authorize(gmsa.Request{
		Namespace: x.Namespace, ServiceAccount: x.ServiceAccount, Uses: uses,
		References: gmsa.Filled(references, assumed(specs, unknown, references)), Specs: assumed(specs, unknown, references),
	}).Denial)
	return specs, unknown
}

// assumed takes the pod's own contents for specs that are not known.
func assumed(specs map[string]gmsa.Spec, unknown map[string]bool, references []gmsa.Reference) map[string]gmsa.Spec {
	assumed := maps.Clone(specs)
	for name := range unknown {
		assumed[name] = gmsa.Spec{Exists: true, Contents: unknownContents}
		for _, r := range references {
			if r.Name == name && r.Contents != "" {
				assumed[name] = gmsa.Spec{Exists: true, Contents: r.Contents}
			}
		}
	}
	return assumed
}

func (x *Accounts) refuse(denial *decision.Denial) {
	if denial != nil {
		x.Verdict, x.Code, x.Reason = Refused, denial.Code, denial.Message
		for _, other := range denial.Others {
			x.Others = append(x.Others, other.Message)
		}
	}
}

// refusedByServer adds what the API server itself refuses.
func (x *Accounts) refusedByServer(pod *corev1.Pod) {
	for _, err := range securitycontext.Validate(&pod.Spec, field.NewPath("spec")) {
		reason := "by the API server: " + err.Field + ": " + err.Detail
		if x.Verdict == Refused {
			x.Others = append(x.Others, reason)
			continue
		}
		x.Verdict, x.Code, x.Reason = Refused, 422, reason
	}
}

func (x *Accounts) noteAnnotations(pod *corev1.Pod) {
	for _, r := range gmsa.References(&corev1.Pod{ObjectMeta: pod.ObjectMeta}, true) {
		x.Notes = append(x.Notes, fmt.Sprintf("%s is not read: no kubelet since Kubernetes 1.15 does; credence gmsa convert --to fields rewrites it", pathOf(r)))
	}
}

func pathOf(r gmsa.Reference) string {
	if r.Name == "" {
		return r.ContentsPath
	}
	return r.NamePath
}

// judge finds what is wrong with a spec, and its account.
func (in *CredentialSpec) judge(spec gmsa.Spec) {
	in.Contents = spec.Contents
	if spec.Fault != "" {
		in.Findings = append(in.Findings, "refused: "+spec.Fault)
	}
	if spec.Contents == "" {
		return
	}
	for _, finding := range lint.Check([]byte(spec.Contents)) {
		severity := "warning"
		if finding.Refused {
			severity = "refused"
		}
		in.Findings = append(in.Findings, fmt.Sprintf("%s: %s: %s; %s", severity, finding.Path, finding.Reason, finding.Fix))
	}
	var contents map[string]any
	if json.Unmarshal([]byte(spec.Contents), &contents) != nil {
		return
	}
	domain, _ := contents["DomainJoinConfig"].(map[string]any)
	account, _ := domain["MachineAccountName"].(string)
	netBIOS, _ := domain["NetBiosName"].(string)
	if account != "" && netBIOS != "" {
		in.Account = netBIOS + `\` + account
	}
}

// containers lists what each container gets, and the sandbox, which has what the pod has.
func (x *Accounts) containers(pod *corev1.Pod) {
	sandbox := windowsOf(securitycontext.Effective(pod.Spec.SecurityContext, nil))
	sandbox.Kind, sandbox.From = "sandbox", "spec.securityContext"
	x.add(sandbox)
	// The sandbox of HostProcess containers is one itself.
	defer func() {
		x.Containers[0].HostProcess = slices.ContainsFunc(x.Containers, func(in Account) bool { return in.HostProcess })
	}()
	own := func(kind, name, path string, context *corev1.SecurityContext) {
		in := windowsOf(securitycontext.Effective(pod.Spec.SecurityContext, context))
		in.Kind, in.Name, in.From = kind, name, "spec.securityContext"
		if context != nil && context.WindowsOptions != nil && (context.WindowsOptions.GMSACredentialSpecName != nil || context.WindowsOptions.GMSACredentialSpec != nil) {
			in.From = path + ".securityContext"
		}
		x.add(in)
	}
	for i, c := range pod.Spec.InitContainers {
		own("init container", c.Name, fmt.Sprintf("spec.initContainers[%d]", i), c.SecurityContext)
	}
	for i, c := range pod.Spec.Containers {
		own("container", c.Name, fmt.Sprintf("spec.containers[%d]", i), c.SecurityContext)
	}
	for i, c := range pod.Spec.EphemeralContainers {
		own("ephemeral container", c.Name, fmt.Sprintf("spec.ephemeralContainers[%d]", i), c.SecurityContext)
	}
}

func (x *Accounts) add(in Account) {
	if in.CredentialSpec == "" && in.Contents == "" {
		in.From = ""
	} else {
		in.From += ".windowsOptions"
	}
	if in.Contents == unknownContents && slices.ContainsFunc(x.CredentialSpecs, func(spec CredentialSpec) bool { return spec.Name == in.CredentialSpec && spec.Source == "" }) {
		in.Contents, in.ContentsUnknown = "", true
	}
	x.Containers = append(x.Containers, in)
}

func windowsOf(effective *corev1.SecurityContext) Account {
	var in Account
	options := effective.WindowsOptions
	if options == nil {
		return in
	}
	text := func(p *string) string {
		if p == nil {
			return ""
		}
		return *p
	}
	in.CredentialSpec, in.Contents, in.UserName = text(options.GMSACredentialSpecName), text(options.GMSACredentialSpec), text(options.RunAsUserName)
	in.HostProcess = options.HostProcess != nil && *options.HostProcess
	return in
}
