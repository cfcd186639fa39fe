package workloadidentity

import (
	"strings"
	"testing"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/targets"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	azureHead    = `{"apiVersion":"azure.authentication.gardener.cloud/v1alpha1","kind":"Config","clientID":"0f4c1f6e-64a5-4b8b-9d0a-1c7f5e0a9b21"`
	tenant       = `,"tenantID":"aa6f4a2c-9e1d-4c3b-8f7e-6d5c4b3a2910"`
	otherTenant  = `,"tenantID":"bb6f4a2c-9e1d-4c3b-8f7e-6d5c4b3a2910"`
	subscription = `,"subscriptionID":"77777777-1111-2222-3333-444444444444"`
	gcpConfig    = `{"apiVersion":"gcp.authentication.gardener.cloud/v1alpha1","kind":"Config","projectID":"my-project","workloadIdentityPoolProvider":"projects/1/locations/global/workloadIdentityPools/pool/providers/provider"}`
	awsOfGCP     = `{"apiVersion":"gcp.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::112233445566:role/x"}`
	store        = `{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:minio:iam:::role/x","region":"us-east-1","endpoint":"https://minio.example"}`
	server       = `{"apiVersion":"kubernetes.authentication.gardener.cloud/v1alpha1","kind":"Config","server":"https://api.example"}`
	before       = `{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"nonsense"}`
)

// of makes an identity of a type, with a configuration unless it is empty.
func of(kind, raw string, audiences ...string) *v1alpha1.WorkloadIdentity {
	wi := valid()
	wi.ResourceVersion = "1"
	wi.Spec.Audiences = audiences
	wi.Spec.TargetSystem = v1alpha1.TargetSystem{Type: kind}
	if raw != "" {
		wi.Spec.TargetSystem.ProviderConfig = &runtime.RawExtension{Raw: []byte(raw)}
	}
	return wi
}

func named(wi *v1alpha1.WorkloadIdentity, name string) *v1alpha1.WorkloadIdentity {
	wi.Name = name
	return wi
}

// compare fails unless each error is of a field and has a text, "field: text", in order.
func compare(t *testing.T, errs field.ErrorList, want []string) {
	t.Helper()
	var got []string
	for i, err := range errs {
		line := err.Field + ": " + err.Detail
		if i < len(want) && strings.HasPrefix(line, want[i]) {
			line = want[i]
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

func TestValidateForTarget(t *testing.T) {
	long := strings.Repeat("a", 57-len("garden-local"))
	for name, test := range map[string]struct {
		wi   *v1alpha1.WorkloadIdentity
		want []string
	}{
		"without a configuration":         {wi: of("azure", "", "a")},
		"unheard of, anything goes":       {wi: of("unheard-of", awsOfGCP, "a")},
		"configuration of another target": {of("aws", awsOfGCP, "a"), []string{"spec.targetSystem.providerConfig.apiVersion: is not of this target system: an identity of type aws needs aws.authentication.gardener.cloud/v1alpha1"}},
		"invalid role":                    {of("aws", before, "a"), []string{"spec.targetSystem.providerConfig.iamRoleARN: must be the ARN of an IAM role"}},
		"unknown field":                   {of("azure", azureHead+tenant+`,"clientid":"x"}`, "a"), []string{"spec.targetSystem.providerConfig.clientid: is not a field of it: it is written clientID"}},
		"gcp, sub of 127":                 {wi: named(of("gcp", "", "a"), long)},
		"gcp, sub of 128":                 {named(of("gcp", "", "a"), long+"a"), []string{"metadata.name: the sub claim would be 128 bytes long, gcp accepts at most 127: namespace and name have 58 characters together, at most 57 fit"}},
		"aws, sub of 128":                 {wi: named(of("aws", "", "a"), long+"a")},
		"gcp, 10 audiences":               {wi: of("gcp", "", audiences(10)...)},
		"gcp, 11 audiences":               {of("gcp", "", audiences(11)...), []string{"spec.audiences: gcp accepts at most 10 audiences"}},
		"gcp, audience of 256":            {wi: of("gcp", "", strings.Repeat("é", 256))},
		"gcp, audience of 257":            {of("gcp", "", "a", strings.Repeat("é", 257)), []string{"spec.audiences[1]: is 257 characters long, gcp accepts at most 256"}},
		"all at once":                     {named(of("gcp", before, audiences(11)...), long+"a"), []string{"metadata.name: the sub claim", "spec.audiences: gcp", "spec.targetSystem.providerConfig.apiVersion: "}},
	} {
		t.Run(name, func(t *testing.T) { compare(t, validate(test.wi), test.want) })
	}
}

func TestValidateChange(t *testing.T) {
	long := strings.Repeat("a", 60)
	for name, test := range map[string]struct {
		old, wi *v1alpha1.WorkloadIdentity
		want    []string
	}{
		"role":                       {old: valid(), wi: of("aws", strings.Replace(string(valid().Spec.TargetSystem.ProviderConfig.Raw), "role/x", "role/y", 1), "team-foo")},
		"account of AWS":             {old: valid(), wi: of("aws", strings.Replace(string(valid().Spec.TargetSystem.ProviderConfig.Raw), "112233445566", "998877665544", 1), "team-foo"), want: []string{"spec.targetSystem.providerConfig.iamRoleARN: is immutable once set: it was arn:aws:iam::112233445566; another account is another identity"}},
		"account taken away":         {old: valid(), wi: of("aws", "", "team-foo"), want: []string{"spec.targetSystem.providerConfig.iamRoleARN: is immutable once set", "spec.targetSystem.providerConfig.endpoint: is immutable once set"}},
		"AWS to a store":             {old: valid(), wi: of("aws", strings.Replace(string(valid().Spec.TargetSystem.ProviderConfig.Raw), "{", `{"endpoint":"https://minio.example",`, 1), "team-foo"), want: []string{"spec.targetSystem.providerConfig.endpoint: is immutable once set: it was that of AWS"}},
		"a store given":              {of("aws", "", "a"), of("aws", store, "a"), []string{"spec.targetSystem.providerConfig.endpoint: can be set only when the identity is created, as its tokens are sent there"}},
		"a store, from nonsense":     {of("aws", before, "a"), of("aws", store, "a"), []string{"spec.targetSystem.providerConfig.endpoint: can be set only when the identity is created"}},
		"server":                     {of("kubernetes", server, "a"), of("kubernetes", strings.Replace(server, "api.example", "evil.example", 1), "a"), []string{"spec.targetSystem.providerConfig.server: is immutable once set: it was https://api.example"}},
		"server given":               {of("kubernetes", "", "a"), of("kubernetes", server, "a"), []string{"spec.targetSystem.providerConfig.server: can be set only when the identity is created"}},
		"server of no configuration": {of("kubernetes", `{"apiVersion":"a/v1","kind":"K"}`, "a"), of("kubernetes", server, "a"), []string{"spec.targetSystem.providerConfig.server: can be set only when the identity is created"}},
		"namespace":                  {old: of("kubernetes", server, "a"), wi: of("kubernetes", strings.Replace(server, "}", `,"namespace":"b"}`, 1), "a")},
		"client":                     {old: of("azure", azureHead+tenant+`}`, "a"), wi: of("azure", strings.Replace(azureHead, "0f4c", "1f4c", 1)+tenant+`}`, "a")},
		"tenant":                     {of("azure", azureHead+tenant+`}`, "a"), of("azure", azureHead+otherTenant+`}`, "a"), []string{"spec.targetSystem.providerConfig.tenantID: is immutable once set: it was aa6f"}},
		"tenant in another case":     {old: of("azure", azureHead+tenant+`}`, "a"), wi: of("azure", azureHead+strings.Replace(tenant, "aa6f", "AA6F", 1)+`}`, "a")},
		"subscription set":           {old: of("azure", azureHead+tenant+`}`, "a"), wi: of("azure", azureHead+tenant+subscription+`}`, "a")},
		"subscription taken away":    {of("azure", azureHead+tenant+subscription+`}`, "a"), of("azure", azureHead+tenant+`}`, "a"), []string{"spec.targetSystem.providerConfig.subscriptionID: is immutable once set"}},
		"configuration taken away":   {of("gcp", gcpConfig, "a"), of("gcp", "", "a"), []string{"spec.targetSystem.providerConfig.projectID: is immutable once set"}},
		"configuration given":        {old: of("gcp", "", "a"), wi: of("gcp", gcpConfig, "a")},
		"project":                    {of("gcp", gcpConfig, "a"), of("gcp", strings.Replace(gcpConfig, "my-project", "your-project", 1), "a"), []string{"spec.targetSystem.providerConfig.projectID: is immutable once set: it was my-project"}},
		"pool":                       {old: of("gcp", gcpConfig, "a"), wi: of("gcp", strings.Replace(gcpConfig, "Pools/pool", "Pools/lake", 1), "a")},
		"from nonsense to right":     {old: of("aws", before, "a"), wi: valid()},
		"from nonsense to nonsense":  {of("aws", before, "a"), of("aws", strings.Replace(before, "nonsense", "worse", 1), "a"), []string{"spec.targetSystem.providerConfig.iamRoleARN: "}},
		"audiences beside nonsense":  {old: of("aws", before, "a"), wi: of("aws", before, "b")},
		"nonsense as it was":         {old: of("aws", before, "a"), wi: of("aws", `{"kind":"Config",  "iamRoleARN":"nonsense","apiVersion":"aws.authentication.gardener.cloud/v1alpha1"}`, "a")},
		"metadata, sub too long":     {old: named(of("gcp", gcpConfig, "a"), long), wi: named(of("gcp", gcpConfig, "b"), long)},
		"too many audiences, as was": {old: of("gcp", "", audiences(11)...), wi: of("gcp", gcpConfig, audiences(11)...)},
		"more of too many audiences": {of("gcp", "", audiences(11)...), of("gcp", "", audiences(12)...), []string{"spec.audiences: gcp accepts at most 10"}},
		"large number as it was":     {old: of("aws", `{"apiVersion":"a/v1","kind":"K","x":10000000000000001}`, "a"), wi: of("aws", `{"apiVersion":"a/v1","kind":"K","x":10000000000000001}`, "b")},
		"large number, one more":     {of("aws", `{"apiVersion":"a/v1","kind":"K","x":10000000000000001}`, "a"), of("aws", `{"apiVersion":"a/v1","kind":"K","x":10000000000000000}`, "a"), []string{"spec.targetSystem.providerConfig.apiVersion: "}},
	} {
		t.Run(name, func(t *testing.T) { compare(t, validateUpdate(test.wi, test.old), test.want) })
	}
}

func TestWarnings(t *testing.T) {
	const (
		missing        = "spec.targetSystem.providerConfig: is not set: workloads are given tokens, but no configuration for "
		alicloudConfig = `{"apiVersion":"alicloud.authentication.gardener.cloud/v1alpha1","kind":"Config","roleARN":"acs:ram::12345:role/r","oidcProviderARN":"acs:ram::12345:oidc-provider/p"}`
		untrusted      = "holds a comma or ${, or begins with -: RAM lists client IDs with commas and takes ${ for a variable; choose another audience"
	)
	for name, test := range map[string]struct {
		wi   *v1alpha1.WorkloadIdentity
		want []string
	}{
		"aws":                         {wi: valid()},
		"aws, an unlikely region":     {of("aws", `{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::112233445566:role/r","region":"eu-centrl-1"}`, "a"), []string{`spec.targetSystem.providerConfig.region: no region with a code like "eu-centrl-1" is known: workloads could not reach AWS; see aws account list-regions`}},
		"aws without configuration":   {of("aws", "", "a"), []string{missing + "aws"}},
		"azure without configuration": {of("azure", "", "a"), []string{missing + "azure"}},
		"gcp without configuration":   {of("gcp", "", "a"), []string{missing + "gcp"}},
		"alicloud without any":        {of("alicloud", "", "a"), []string{missing + "alicloud"}},
		"kubernetes without any":      {wi: of("kubernetes", "", "a")},
		"generic":                     {wi: of("generic", "", "a")},
		"azure, another audience":     {of("azure", azureHead+tenant+`}`, "a"), []string{"spec.audiences: unless azure was set up otherwise, it expects api://AzureADTokenExchange"}},
		"azure, its audience":         {wi: of("azure", azureHead+tenant+`}`, "a", "api://AzureADTokenExchange")},
		"gcp, another audience":       {of("gcp", gcpConfig, "a"), []string{"spec.audiences: unless gcp was set up otherwise, it expects //iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/provider or https://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/provider"}},
		"gcp, its audience":           {wi: of("gcp", gcpConfig, "https://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/provider")},
		"from before":                 {wi: of("aws", before, "a")},
		"alicloud":                    {wi: of("alicloud", alicloudConfig, "a", "$a", "a-")},
		"alicloud, no trust for them": {of("alicloud", alicloudConfig, "a", "-b", "c,d", "${e}"), []string{"spec.audiences[1]: \"-b\" " + untrusted, "spec.audiences[2]: \"c,d\" " + untrusted, "spec.audiences[3]: \"${e}\" " + untrusted}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, strategy{}.WarningsOnCreate(t.Context(), test.wi)); diff != "" {
				t.Errorf("on creation (-want +got):\n%s", diff)
			}
			changed := test.wi.DeepCopy()
			changed.Labels = map[string]string{"a": "b"}
			if got := (strategy{}).WarningsOnUpdate(t.Context(), changed, test.wi); got != nil {
				t.Errorf("on a change of labels: %q", got)
			}
			old := test.wi.DeepCopy()
			old.Spec.Audiences = []string{"former"}
			if diff := cmp.Diff(test.want, strategy{}.WarningsOnUpdate(t.Context(), changed, old)); diff != "" {
				t.Errorf("on a change of audiences (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever bytes come as the configuration of a type that is known: no panic, and accepted bytes are accepted again.
func FuzzTarget(f *testing.F) {
	for _, raw := range []string{gcpConfig, awsOfGCP, before, azureHead + tenant + subscription + `}`, `{}`, `{"apiVersion":"a/v1","kind":"K"}`} {
		f.Add(uint8(1), []byte(raw), []byte(gcpConfig))
	}
	types := targets.Types()
	f.Fuzz(func(t *testing.T, which uint8, raw, oldRaw []byte) {
		kind := types[int(which)%len(types)]
		wi, old := of(kind, string(raw), "a"), of(kind, string(oldRaw), "b")
		created := validate(wi)
		if len(created) == 0 && len(validateUpdate(wi, wi.DeepCopy())) > 0 {
			t.Errorf("accepted, and then refused: %s", raw)
		}
		if len(created) > 0 && len(validateUpdate(wi, old)) == 0 && !sameConfig(wi.Spec.TargetSystem, old.Spec.TargetSystem) {
			t.Errorf("refused at creation, and accepted as a change: %s", raw)
		}
		warnings(wi.Spec)
	})
}
