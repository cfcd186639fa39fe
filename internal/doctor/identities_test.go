package doctor

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/inventory"
)

func TestLimitsOfTargetSystems(t *testing.T) {
	const role = `{"apiVersion":"aws.authentication.gardener.cloud/v1alpha1","kind":"Config","iamRoleARN":"arn:aws:iam::123456789012:role/store"}`
	const client = `{"apiVersion":"azure.authentication.gardener.cloud/v1alpha1","kind":"Config","clientID":"00000000-0000-0000-0000-000000000001","tenantID":"00000000-0000-0000-0000-000000000002","subscriptionID":"00000000-0000-0000-0000-000000000003"}`
	for name, test := range map[string]struct {
		identity inventory.Identity
		want     []string
	}{
		"none broken":      {inventory.Identity{Type: "aws", Subject: "s", Audiences: []string{"sts.amazonaws.com"}, Config: []byte(role)}, nil},
		"of an own system": {inventory.Identity{Type: "own", Subject: strings.Repeat("s", 1000), Audiences: []string{"a", "b"}}, nil},
		"a long subject":   {inventory.Identity{Type: "gcp", Subject: strings.Repeat("s", 130)}, []string{"fail: team/app: its subject is 130 bytes long, gcp takes at most 127", "warn: providerConfig"}},
		"an audience":      {inventory.Identity{Type: "azure", Audiences: []string{"other"}, Config: []byte(client)}, []string{`warn: none of its audiences is what azure expects, "api://AzureADTokenExchange"`}},
		"not its config":   {inventory.Identity{Type: "aws", Audiences: []string{"sts.amazonaws.com"}, Config: []byte(`{"roleARN":"x"}`)}, []string{"fail: team/app: spec.targetSystem.providerConfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			test.identity.Namespace, test.identity.Name = "team", "app"
			checkLimits(found, &test.identity)
			expect(t, found, test.want...)
		})
	}
}

func TestTokens(t *testing.T) {
	at := func(d time.Duration) *time.Time { when := now.Add(d); return &when }
	good := func(change func(*inventory.Delivery)) *inventory.Delivery {
		d := &inventory.Delivery{Namespace: "team", Secret: "s", RequestedBy: "jane", Issuer: "https://id", Issued: now, Expires: at(time.Hour), Renews: at(time.Minute)}
		if change != nil {
			change(d)
		}
		return d
	}
	failure := &inventory.Warning{Time: now, Reason: "RenewalFailed", Message: "no such key"}
	for name, test := range map[string]struct {
		delivery *inventory.Delivery
		missing  bool // the identity
		want     []string
	}{
		"fresh":        {good(nil), false, []string{"pass: 1 Secret is fresh"}},
		"broken":       {good(func(d *inventory.Delivery) { d.Problem = "annotation x" }), false, []string{"fail: 1 of 1 can't be understood: team/s: annotation x"}},
		"expired":      {good(func(d *inventory.Delivery) { d.Expires, d.LastFailure = at(-time.Minute), failure }), false, []string{"fail: have expired: team/s (60s ago), RenewalFailed: no such key"}},
		"overdue":      {good(func(d *inventory.Delivery) { d.Renews = at(-time.Hour) }), false, []string{"fail: are overdue for renewal: team/s (60m ago)"}},
		"late":         {good(func(d *inventory.Delivery) { d.Renews = at(-lateness) }), false, []string{"pass: "}},
		"empty":        {good(func(d *inventory.Delivery) { d.Expires = nil }), false, []string{"fail: have no token: team/s"}},
		"absent":       {good(func(d *inventory.Delivery) { d.Missing = true }), false, []string{"fail: do not exist, though service accounts need them: team/s"}},
		"unkept":       {good(func(d *inventory.Delivery) { d.Renews = nil }), false, []string{"warn: no time of its renewal, as if no agent kept them: team/s"}},
		"failing":      {good(func(d *inventory.Delivery) { d.LastFailure = failure }), false, []string{"warn: got no new one since: team/s, RenewalFailed: no such key", "pass: 1 Secret"}},
		"foreign":      {good(func(d *inventory.Delivery) { d.Issuer = "https://other" }), false, []string{"fail: are of another issuer than the identity's: team/s", "pass: "}},
		"orphaned":     {good(nil), true, []string{"warn: are of identities that do not exist any more: team/s"}},
		"of no user":   {good(func(d *inventory.Delivery) { d.RequestedBy = "" }), false, []string{"warn: do not hold the user who labelled them", "pass: "}},
		"of a pod":     {good(func(d *inventory.Delivery) { d.RequestedBy, d.ServiceAccount = "", "app" }), false, []string{"pass: "}},
		"was released": {good(func(d *inventory.Delivery) { d.ReleasedSince = at(-2 * time.Hour) }), false, []string{"warn: does not name any more, and stay for the pods that mount them: team/s (since 120m ago)", "pass: "}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			known := &inventory.Report{Seen: true, Identities: []*inventory.Identity{{Namespace: "team", Name: "app", Issuer: "https://id", Missing: test.missing, Deliveries: []*inventory.Delivery{test.delivery}}}}
			examination().checkTokens(found, known)
			expect(t, found, test.want...)
		})
	}
	found := &Diagnosis{}
	examination().checkTokens(found, &inventory.Report{WaitingCount: 2, Waiting: []string{"team/a", "team/b"}})
	expect(t, found, "warn: 2 pods wait until a token exists: team/a", "skipped: the Secrets that carry them could not be looked at")
}

func TestKeys(t *testing.T) {
	const ring = "apiVersion: identity.credence.dev/v1alpha1\nkind: KeyRing\nmetadata: {name: workload-identities}\nstatus:\n"
	const pair = "{id: a, algorithm: ES256, state: active}, {id: b, algorithm: ES256, state: spare}"
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"all is well":     {ring + "  keys: [" + pair + "]", []string{"pass: 2 are published"}},
		"no ring":         {"", []string{"fail: read the ring of keys"}},
		"no keys":         {ring + "  issuer: x", []string{"fail: the KeyRing has no keys in its status yet"}},
		"none signs":      {ring + "  keys: [{id: b, algorithm: ES256, state: spare}]", []string{"fail: no ES256 key is active"}},
		"no spare":        {ring + "  keys: [" + pair + ", {id: c, algorithm: RS256, state: active}]", []string{"warn: no RS256 key is spare"}},
		"too many":        {ring + "  keys: [" + pair + strings.Repeat(", {id: c, algorithm: ES256, state: retired}", 7) + "]", []string{"warn: 9 are published: relying parties with narrow limits take 10"}},
		"a condition":     {ring + "  keys: [" + pair + "]\n  conditions: [{type: Withdrawn, status: 'False', reason: StillPublished, message: still there}, {type: Signing, status: 'True'}]", []string{"fail: Withdrawn is False, StillPublished: still there"}},
		"a late rotation": {ring + "  keys: [" + pair + "]\n  nextChange: '2026-07-01T11:00:00Z'", []string{"fail: a change of the keys was due 60m ago"}},
		"a due rotation":  {ring + "  keys: [" + pair + "]\n  nextChange: '2026-07-01T11:56:00Z'", []string{"pass: "}},
		"not given":       {ring + "  keys: [" + pair + "]\n  relyingParties: [{name: vault, missingKeys: [b]}, {name: aws}]", []string{"warn: relying party vault has not been given 1 key"}},
		"no right":        {deny("get", "keyrings"), []string{"skipped: you may not get keyrings"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			examination().checkKeys(t.Context(), found, open(t, test.objects))
			expect(t, found, test.want...)
		})
	}
}

// A public name that leads to an address of this network is one that clouds cannot reach.
func TestPublicName(t *testing.T) {
	for name, test := range map[string]struct {
		issuer    string
		addresses []net.IP
		err       error
		want      []string
	}{
		"public":     {"https://id.example.com", []net.IP{net.IPv4(93, 184, 216, 34)}, nil, []string{"pass: id.example.com is public"}},
		"private":    {"https://id.example.com", []net.IP{net.IPv4(93, 184, 216, 34), net.IPv4(10, 0, 0, 1)}, nil, []string{"warn: id.example.com is 10.0.0.1 here"}},
		"loopback":   {"https://id.example.com", []net.IP{net.IPv6loopback}, nil, []string{"warn: id.example.com is ::1 here"}},
		"not there":  {"https://id.example.com", nil, errors.New("no such host"), []string{"warn: id.example.com can't be looked up from here: no such host"}},
		"an address": {"https://192.0.2.1:8443", nil, nil, nil},
		"not an URL": {"https://%", nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found, d := &Diagnosis{}, examination()
			d.Resolve = func(_ context.Context, host string) ([]net.IP, error) {
				if host != "id.example.com" {
					t.Errorf("%s was looked up", host)
				}
				return test.addresses, test.err
			}
			d.checkPublicName(t.Context(), found, test.issuer)
			expect(t, found, test.want...)
		})
	}
}

func TestRevokedKeyThatIsStillShown(t *testing.T) {
	ring := &v1alpha1.KeyRing{Status: v1alpha1.KeyRingStatus{Revoked: []v1alpha1.RevokedKey{{ID: "a"}, {ID: "b"}}}}
	for name, test := range map[string]struct {
		shown []identity.KeyID
		err   error
		want  []string
	}{
		"withdrawn":   {[]identity.KeyID{"c"}, nil, nil},
		"one of them": {[]identity.KeyID{"c", "b"}, nil, []string{"fail: https://id still shows the revoked key b"}},
		"not known":   {nil, errors.New("503"), []string{"skipped: whether https://id still shows a revoked key is not known: 503"}},
	} {
		found, d := &Diagnosis{}, examination()
		d.Shown = func(context.Context, identity.Issuer, *http.Client) ([]identity.KeyID, error) {
			return test.shown, test.err
		}
		d.checkRevoked(t.Context(), found, "https://id", nil, ring)
		t.Log(name)
		expect(t, found, test.want...)
	}
	examination().checkRevoked(t.Context(), &Diagnosis{}, "https://id", nil, &v1alpha1.KeyRing{}) // nothing is fetched
}

func TestIdentities(t *testing.T) {
	const store = "apiVersion: authentication.gardener.cloud/v1alpha1\nkind: WorkloadIdentity\nmetadata: {namespace: team, name: store}\nspec: {audiences: [a], targetSystem: {type: own}}"
	for name, test := range map[string]struct {
		objects string
		names   []string
		want    []string
	}{
		"all":          {store, nil, []string{"pass: 1 is what the target system takes"}},
		"that is not":  {store, []string{"other"}, []string{"fail: WorkloadIdentity team/other does not exist"}},
		"of one place": {joined(store, "{kind: Deny, verb: list, resource: workloadidentities, namespaces: all}"), nil, []string{"skipped: only the identities of namespace team were looked at", "pass: 1 is"}},
		"no right":     {joined(store, deny("list", "workloadidentities")), nil, []string{"skipped: you may not read them"}},
		"no Secrets":   {joined(store, deny("list", "secrets")), nil, []string{"skipped: the Secrets were not looked at", "pass: 1 is"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, api := &Diagnosis{}, open(t, test.objects)
			examination().checkIdentities(t.Context(), found, cluster.Both{Workload: api, Identity: api}, Selection{Home: "team", Names: test.names})
			expect(t, found, test.want...)
		})
	}
}

func TestClusters(t *testing.T) {
	const kind = "apiVersion: identity.credence.dev/v1alpha1\nkind: WorkloadCluster\nmetadata: {name: east}\n"
	seen := func(ago time.Duration) string {
		return kind + "status: {lastSeenTime: '" + metav1.NewTime(now.Add(-ago)).UTC().Format(time.RFC3339) + "'}"
	}
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"none":          {"", nil},
		"seen":          {seen(time.Hour), []string{"pass: 1 WorkloadCluster was seen within a day, or never yet"}},
		"never yet":     {kind, []string{"pass: "}},
		"away":          {seen(25 * time.Hour), []string{"warn: after two days it has to join again"}},
		"gone":          {seen(72 * time.Hour), []string{"warn: its credentials have expired, so that it has to join again"}},
		"its account":   {joined(kind, account("workload-clusters", "east-agent", "")), []string{"pass: "}},
		"that has left": {account("workload-clusters", "west-webhook", ""), []string{"warn: service accounts of a cluster west, which has no WorkloadCluster"}},
		"by its users":  {joined(kind+"spec: {users: ['system:serviceaccount:workload-clusters:west-agent']}", account("workload-clusters", "west-agent", "")), []string{"pass: "}},
		"no right":      {deny("list", "workloadclusters"), []string{"skipped: you may not list workloadclusters"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			examination().checkClusters(t.Context(), found, open(t, test.objects))
			expect(t, found, test.want...)
		})
	}
}

// The API server of Credence reads the objects of each ContextKind: agents of joined clusters get no tokens until it can.
func TestReadableContextKinds(t *testing.T) {
	const kind = "apiVersion: identity.credence.dev/v1alpha1\nkind: ContextKind\nmetadata: {name: shoots}\nspec: {object: {group: core.gardener.cloud, version: v1beta1, resource: shoots}}"
	const served = "apiVersion: v1\nkind: APIResourceList\nmetadata: {name: core.gardener.cloud/v1beta1}\nresources: [{name: shoots}]"
	const may = "{kind: Use, user: 'system:serviceaccount:credence-system:credence-apiserver', identity: /, resource: shoots, verb: "
	for name, test := range map[string]struct {
		objects string
		want    []string
	}{
		"none":           {"", nil},
		"readable":       {joined(kind, served, may+"list}", may+"watch}"), []string{"pass: the objects of 1 ContextKind"}},
		"not watched":    {joined(kind, served, may+"list}"), []string{"fail: may not watch shoots"}},
		"not served":     {kind, []string{"fail: the cluster does not serve shoots of core.gardener.cloud/v1beta1"}},
		"reviews denied": {joined(kind, served, deny("create", "subjectaccessreviews")), []string{"skipped: you may not create subjectaccessreviews"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := &Diagnosis{}
			checkContextKinds(t.Context(), found, open(t, test.objects))
			expect(t, found, test.want...)
		})
	}
}
