package consumers

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/sdk/plane"
	"github.com/credence-id/credence/test/sdk/sts"
	"github.com/credence-id/credence/test/testkit"
)

const (
	issuerURL = "https://identity.example.com/shop"
	role      = "arn:aws:iam::112233445566:role/dns"
	zone      = "Z0000000000000EXAMPLE"
	audience  = "sts.amazonaws.com"
)

// world is a cloud that trusts one identity, on loopback.
type world struct {
	plane *plane.Plane
	sts   *sts.Server
	cloud *httptest.Server
	token string // its file

	mu      sync.Mutex
	changes []change
}

// change is one of a record or an object, and whose credentials it was made with.
type change struct{ name, action, tokenID string }

// transport serves the documents of the issuer in this process.
type transport struct{ documents http.Handler }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	t.documents.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

func workload() issuer.Identity {
	return issuer.Identity{Namespace: "shop", Name: "dns", UID: "12b580fe-1f74-4195-852b-e1a74b03496a"}
}

// newWorld starts a cloud, and sets the variables that a pod of an identity of AWS has. Its file has no token yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	tokens := testkit.Need(plane.New(issuerURL))(t)
	subject := testkit.Need(identity.NewSubject(workload().Namespace, workload().Name, workload().UID))(t)
	w := &world{plane: tokens, token: filepath.Join(t.TempDir(), "token")}
	w.sts = sts.New(sts.Settings{
		Client: &http.Client{Transport: transport{tokens.Documents()}}, ShortLived: true,
		AWS: []sts.AWSRole{{ARN: role, Trust: sts.Trust{Issuer: issuerURL, Audience: audience, Subject: string(subject)}}},
	})
	w.cloud = httptest.NewServer(w)
	t.Cleanup(w.cloud.Close)
	for name, value := range map[string]string{
		"AWS_ROLE_ARN": role, "AWS_WEB_IDENTITY_TOKEN_FILE": w.token, "AWS_REGION": "eu-central-1", "AWS_DEFAULT_REGION": "eu-central-1", "AWS_STS_REGIONAL_ENDPOINTS": "regional",
		"AWS_ENDPOINT_URL_STS": w.cloud.URL, "AWS_ENDPOINT_URL_ROUTE_53": w.cloud.URL, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/none", "AWS_SHARED_CREDENTIALS_FILE": "/none",
	} {
		t.Setenv(name, value)
	}
	return w
}

// deliver puts a new token into its file, as the agent and the kubelet do, and returns its jti.
func (w *world) deliver(t *testing.T, audience string) (id string) {
	t.Helper()
	issued := testkit.Need(w.plane.Issue(issuer.Request{Identity: workload(), Audiences: []string{audience}, TargetAlgorithm: targets.Algorithm("aws")}, time.Now()))(t)
	testkit.Must(t, os.WriteFile(w.token+".new", []byte(issued.Token.Reveal()), 0o600))
	testkit.Must(t, os.Rename(w.token+".new", w.token))
	return issued.ID
}

// renewals calls a step with each of three tokens: the first, a renewed one, and one that another key has signed. The step returns the jti of
// the token that the consumer has shown.
func (w *world) renewals(t *testing.T, audience string, step func(n int) (shown string)) {
	t.Helper()
	for n := range 3 {
		if n == 2 {
			for _, algorithm := range []identity.Algorithm{identity.RS256, identity.ES256} {
				testkit.Must(t, w.plane.Rotate(algorithm))
			}
		}
		want := w.deliver(t, audience)
		if shown := step(n); shown != want {
			t.Errorf("with token %d the consumer has shown %q, want %q", n, shown, want)
		}
	}
}

// ServeHTTP is STS, Route 53 and S3.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" {
		r.Host = "sts.eu-central-1.amazonaws.com"
		w.sts.ServeHTTP(rw, r)
		return
	}
	granted, known := w.sts.Session(r.Header.Get("X-Amz-Security-Token"))
	if !known {
		http.Error(rw, "<ErrorResponse><Error><Code>InvalidClientTokenId</Code></Error></ErrorResponse>", http.StatusForbidden)
		return
	}
	const names = `xmlns="https://route53.amazonaws.com/doc/2013-04-01/"`
	path := strings.TrimPrefix(r.URL.Path, "/2013-04-01/")
	switch {
	case r.Method == http.MethodPut && strings.HasPrefix(path, "/backups/"):
		w.changed(change{strings.TrimPrefix(path, "/backups/"), "PUT", granted.TokenID})
		rw.Header().Set("ETag", `"e"`)
	case r.Method == http.MethodGet && path == "hostedzone":
		fmt.Fprintf(rw, `<ListHostedZonesResponse %s><HostedZones><HostedZone><Id>/hostedzone/%s</Id><Name>example.com.</Name><CallerReference>a</CallerReference></HostedZone></HostedZones><IsTruncated>false</IsTruncated><MaxItems>100</MaxItems></ListHostedZonesResponse>`, names, zone)
	case r.Method == http.MethodGet && strings.HasPrefix(path, "change/"):
		fmt.Fprintf(rw, `<GetChangeResponse %s><ChangeInfo><Id>/change/C1</Id><Status>INSYNC</Status><SubmittedAt>2026-01-01T00:00:00Z</SubmittedAt></ChangeInfo></GetChangeResponse>`, names)
	case r.Method == http.MethodPost && regexp.MustCompile(`^hostedzone/`+zone+`/rrset/?$`).MatchString(path):
		var batch struct {
			Changes []struct {
				Action string
				Name   string `xml:"ResourceRecordSet>Name"`
			} `xml:"ChangeBatch>Changes>Change"`
		}
		if err := xml.NewDecoder(r.Body).Decode(&batch); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		for _, each := range batch.Changes {
			w.changed(change{strings.TrimSuffix(each.Name, "."), each.Action, granted.TokenID})
		}
		fmt.Fprintf(rw, `<ChangeResourceRecordSetsResponse %s><ChangeInfo><Id>/change/C1</Id><Status>INSYNC</Status><SubmittedAt>2026-01-01T00:00:00Z</SubmittedAt></ChangeInfo></ChangeResourceRecordSetsResponse>`, names)
	default:
		http.Error(rw, r.Method+" "+r.URL.Path+" is not of this stand-in", http.StatusNotImplemented)
	}
}

func (w *world) changed(c change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, c)
}

// changedBy returns the jti of the token by which a record or an object was changed.
func (w *world) changedBy(t *testing.T, name string) string {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.IndexFunc(w.changes, func(c change) bool { return c.name == name })
	if at < 0 {
		t.Fatalf("%s was not changed: %v", name, w.changes)
	}
	return w.changes[at].tokenID
}
