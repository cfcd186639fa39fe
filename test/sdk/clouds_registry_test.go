package sdk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/issuer"
	"github.com/credence-id/credence/internal/registry"
	"github.com/credence-id/credence/test/sdk/sts"
	"github.com/credence-id/credence/test/testkit"
)

// cloudRegistry is the registry of images of a cloud, and the requests by which its password is got.
type cloudRegistry struct {
	cloud            cloud
	images, exchange string
	username         string
	// lasts is how long the password is of use.
	lasts time.Duration
	// hosts answer one after the other; missing is in the error for an answer of each without fields.
	hosts, missing [2]string
	// distrusted is in the error for a token that the cloud refuses, refused in that for a password that was refused.
	distrusted, refused string
}

func cloudRegistries() []cloudRegistry {
	return []cloudRegistry{
		{
			cloud: awsCloud(), images: "112233445566.dkr.ecr.eu-central-1.amazonaws.com/shop", exchange: "amazon-ecr, settings: {caFile: %q}",
			username: "AWS", lasts: 0, // that of the role's session, and not ECR's twelve hours
			hosts:      [2]string{"sts.eu-central-1.amazonaws.com", "api.ecr.eu-central-1.amazonaws.com"},
			missing:    [2]string{"its answer has no AccessKeyId", "its answer has no authorizationData"},
			distrusted: " Check ", refused: "let the role do ecr:GetAuthorizationToken",
		}, {
			cloud: awsCloud(), images: "public.ecr.aws/shop", exchange: "amazon-ecr, settings: {caFile: %q}",
			username: "AWS", lasts: 0,
			hosts:      [2]string{"sts.us-east-1.amazonaws.com", "api.ecr-public.us-east-1.amazonaws.com"},
			missing:    [2]string{"its answer has no AccessKeyId", "its answer has no authorizationData"},
			distrusted: " Check ", refused: "let the role do ecr-public:GetAuthorizationToken",
		}, {
			cloud: azureCloud(), images: sts.AzureLoginServer, exchange: "azure-container-registry, settings: {caFile: %q}",
			username: "00000000-0000-0000-0000-000000000000", lasts: 3 * time.Hour,
			hosts:      [2]string{"login.microsoftonline.com", sts.AzureLoginServer},
			missing:    [2]string{"its answer has no access_token", "its answer has no refresh_token"},
			distrusted: " Check ", refused: "the role AcrPull",
		}, {
			cloud: alibabaCloud(), images: "shop-registry.eu-central-1.cr.aliyuncs.com", exchange: "alibaba-container-registry, settings: {instanceID: " + sts.AlibabaInstance + ", region: eu-central-1, caFile: %q}",
			username: "cr_temp_user", lasts: time.Minute,
			hosts:      [2]string{"sts.eu-central-1.aliyuncs.com", "cr.eu-central-1.aliyuncs.com"},
			missing:    [2]string{"its answer has no AccessKeyId", "its answer has no TempUsername"},
			distrusted: "trust policy", refused: "let the role do cr:GetAuthorizationToken",
		},
	}
}

// registry is the one of a node, which may be handed tokens for two audiences.
func (c cloudRegistry) registry(t *testing.T, w *world) registry.Registry {
	t.Helper()
	config := testkit.Need(registry.Parse(fmt.Appendf(nil, `registries: [{images: %s, audiences: [%q, another], exchange: %s}]`, c.images, c.cloud.audience, fmt.Sprintf(c.exchange, w.authority))))(t)
	found, _ := config.Of(c.images + "/cart")
	return found
}

// token is one of the identity that the cloud trusts, with what the API has of its target system.
func (c cloudRegistry) token(t *testing.T, w *world, change func(*issuer.Request)) registry.Token {
	t.Helper()
	asked := request(c.cloud)
	change(&asked)
	return registry.Token{
		Value: w.issue(t, asked).Token, Expires: time.Now().Add(time.Hour),
		Target: &v1alpha1.TargetSystem{Type: c.cloud.name, ProviderConfig: &runtime.RawExtension{Raw: []byte(c.cloud.everything())}},
	}
}

func asItIs(*issuer.Request) {}

// Each cloud's registry has a password for the identity's role or application, which the cloud gives for a token that it has verified.
func TestCloudRegistries(t *testing.T) {
	w := newWorld(t)
	for _, c := range cloudRegistries() {
		t.Run(c.cloud.name, func(t *testing.T) {
			before := time.Now()
			got := testkit.Need(c.registry(t, w).Credentials(t.Context(), c.token(t, w, asItIs), time.Now))(t)
			granted, known := w.sts.Session(got.Password.Reveal())
			if !known || !strings.HasPrefix(granted.Principal, c.cloud.principal) || got.Username != c.username {
				t.Errorf("%s for %+v, %v", got.Username, granted, known)
			}
			// Answers have whole seconds.
			if got.Expires.Before(before.Add(c.lasts-time.Second)) || got.Expires.After(time.Now().Add(c.lasts+time.Second)) {
				t.Errorf("the password ends in %s, want %s", got.Expires.Sub(before), c.lasts)
			}

			// The error for a refusal has the advice for that cloud.
			_, err := c.registry(t, w).Credentials(t.Context(), c.token(t, w, func(r *issuer.Request) { r.Audiences = []string{"another"} }), time.Now)
			if err == nil || !strings.Contains(err.Error(), "https://"+c.hosts[0]+"/") || !strings.Contains(err.Error(), c.distrusted) {
				t.Errorf("another audience: %v", err)
			}
			_, err = c.registry(t, w).Credentials(t.Context(), c.token(t, w, func(r *issuer.Request) { r.Identity.UID = "another" }), time.Now)
			if err == nil || !strings.Contains(err.Error(), c.distrusted) {
				t.Errorf("another subject: %v", err)
			}
		})
	}
}

// Whatever either host answers: the error has the registry, the host and what to do, and no secret of the requests; a redirect is not followed.
func TestAnswersOfCloudRegistries(t *testing.T) {
	w := newWorld(t)
	elsewhere := func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }
	w.instead.Store("sts.googleapis.com", http.HandlerFunc(elsewhere))
	for _, c := range cloudRegistries() {
		of := c.registry(t, w)
		for i, host := range c.hosts {
			for name, answer := range map[string]struct {
				status     int
				body, want string
			}{
				"an outage":   {500, "<html>Internal Server Error</html>", "answers 500: <html>Internal Server Error</html>"},
				"a login":     {200, "<html>please log in</html>", "correct images and settings in the configuration, or the proxy"},
				"nothing":     {200, "", "correct images and settings in the configuration, or the proxy"},
				"no field":    {200, map[bool]string{true: "<AssumeRoleWithWebIdentityResponse/>", false: "{}"}[strings.HasSuffix(host, ".amazonaws.com") && i == 0], c.missing[i]},
				"a redirect":  {307, "", "it answers 307, and tokens follow no redirect"},
				"too large":   {200, `{"access_token":"` + strings.Repeat("a", 1<<20) + `"}`, "the answer is larger than"},
				"an echo":     {400, "", "answers 400: "},
				"other rules": {403, `{"__type":"AccessDeniedException","message":"no"}`, map[int]string{0: "answers 403: AccessDeniedException: no", 1: c.refused}[i]},
			} {
				t.Run(c.cloud.name+"/"+host+"/"+name, func(t *testing.T) {
					var sent []string
					w.instead.Store(host, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
						body, _ := io.ReadAll(r.Body)
						form, _ := url.ParseQuery(string(body))
						for _, field := range []string{"WebIdentityToken", "client_assertion", "access_token", "OIDCToken"} {
							sent = append(sent, form[field]...)
						}
						for _, header := range []string{"X-Amz-Security-Token", "X-Acs-Security-Token"} {
							if value := r.Header.Get(header); value != "" {
								sent = append(sent, value)
							}
						}
						rw.Header().Set("Location", "https://sts.googleapis.com/")
						rw.WriteHeader(answer.status)
						if name == "an echo" {
							fmt.Fprintf(rw, "you sent %s", strings.Join(sent, " "))
							return
						}
						_, _ = rw.Write([]byte(answer.body))
					}))
					defer w.instead.Delete(host)
					got, err := of.Credentials(t.Context(), c.token(t, w, asItIs), time.Now)
					if err == nil || !got.Password.IsZero() || !strings.Contains(err.Error(), answer.want) {
						t.Fatalf("%v, want %q", err, answer.want)
					}
					if !strings.HasPrefix(err.Error(), "get credentials for images of "+c.images+": ") || !strings.Contains(err.Error(), "https://"+host+"/") {
						t.Errorf("%v does not name the registry and the host", err)
					}
					if len(sent) == 0 {
						t.Fatal("no secret was sent")
					}
					for _, secret := range sent {
						if strings.Contains(err.Error(), secret[:min(len(secret), 40)]) {
							t.Errorf("a secret is in %v", err)
						}
					}
				})
			}
		}
		// Nothing listens.
		w.instead.Store(c.hosts[0], http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else the connection could be reset, which is another error
			panic(http.ErrAbortHandler)
		}))
		if _, err := of.Credentials(t.Context(), c.token(t, w, asItIs), time.Now); err == nil || !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "request to https://"+c.hosts[0]+"/") {
			t.Errorf("%s, no answer: %v", c.cloud.name, err)
		}
		w.instead.Delete(c.hosts[0])
	}
}

// The requests to the token services are those of the clouds' own SDKs: each field that is sent has the SDK's value.
func TestRequestsOfCloudRegistries(t *testing.T) {
	w := newWorld(t)
	for _, c := range cloudRegistries() {
		if c.hosts[0] == "sts.us-east-1.amazonaws.com" {
			continue // the same request, to another region than the SDK's
		}
		t.Run(c.cloud.name, func(t *testing.T) {
			var forms []url.Values
			w.instead.Store(c.hosts[0], http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				form, err := url.ParseQuery(string(body))
				if err == nil && r.Method == http.MethodPost && len(form) > 0 {
					for key, values := range r.URL.Query() {
						form[key] = values
					}
					form.Set("method, path and type", r.Method+" "+r.URL.Path+" "+strings.Split(r.Header.Get("Content-Type"), ";")[0])
					forms = append(forms, form)
				}
				w.sts.ServeHTTP(rw, r)
			}))
			defer w.instead.Delete(c.hosts[0])
			asked := request(c.cloud)
			token := w.issue(t, asked)
			full := c.cloud
			full.providerConfig = full.everything()
			pod := newPod(t, full, w.authority)
			pod.deliver(t, token.Token)
			pod.start(t)
			w.granted(t, c.cloud, pod.ask(t), token)
			ofSDK := len(forms)
			if ofSDK == 0 {
				t.Fatal("the SDK sends its request to another host")
			}
			own := c.token(t, w, asItIs)
			own.Value = token.Token
			if _, err := c.registry(t, w).Credentials(t.Context(), own, time.Now); err != nil || len(forms) != ofSDK+1 {
				t.Fatalf("%d requests, %v", len(forms), err)
			}
			want := forms[0]
			for field, values := range forms[ofSDK] {
				switch field {
				case "Timestamp":
					testkit.Expect(t, testkit.Err(time.Parse(time.RFC3339, values[0])))
				case "RoleSessionName": // Alibaba's SDK has one of its own
					if values[0] != "cart" || want.Get(field) == "" {
						t.Errorf("the session is %q, the SDK has %q", values, want[field])
					}
				case "scope": // that of another service
					if want.Get(field) == "" || values[0] != "https://containerregistry.azure.net/.default" {
						t.Errorf("scope %q, the SDK has %q", values[0], want.Get(field))
					}
				default:
					if len(values) != 1 || values[0] != want.Get(field) {
						t.Errorf("%s is %q, the SDK has %q", field, values, want[field])
					}
				}
			}
			for _, optional := range []string{"DurationSeconds", "client_info", "SignatureNonce"} {
				want.Del(optional)
			}
			if len(forms[ofSDK]) != len(want) {
				t.Errorf("the fields are %v, the SDK has %v", forms[ofSDK], want)
			}
		})
	}
}
