package consumers

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/prometheus/alertmanager/alert"
	"github.com/prometheus/alertmanager/config"
	"github.com/prometheus/alertmanager/notify"
	"github.com/prometheus/alertmanager/notify/webhook"
	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/common/model"

	"github.com/credence-id/credence/test/testkit"
)

// A receiver of Alertmanager shows the token of its credentials_file, which it reads for each notification.
func TestAlertmanagerNotifiesAcrossARenewal(t *testing.T) {
	const audience = "alerts.example.com"
	w := newWorld(t)
	ctx := oidc.ClientContext(t.Context(), &http.Client{Transport: transport{w.plane.Documents()}})
	verifier := testkit.Need(oidc.NewProvider(ctx, issuerURL))(t).Verifier(&oidc.Config{ClientID: audience, SupportedSigningAlgs: []string{"RS256", "ES256"}})
	shown := ""
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var claims struct {
			ID string `json:"jti"`
		}
		token, err := verifier.Verify(ctx, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		if err == nil {
			err = token.Claims(&claims)
		}
		if err != nil {
			http.Error(rw, err.Error(), http.StatusUnauthorized)
			return
		}
		shown = claims.ID
	}))
	t.Cleanup(api.Close)
	loaded := testkit.Need(config.Load(fmt.Sprintf(`{route: {receiver: api}, receivers: [{name: api, webhook_configs: [{url: %q, http_config: {authorization: {credentials_file: %q}}}]}]}`, api.URL, w.token)))(t)
	templates := testkit.Need(template.FromGlobs(nil))(t)
	templates.ExternalURL = testkit.Need(url.Parse("https://alertmanager.example.com"))(t)
	receiver := testkit.Need(webhook.New(loaded.Receivers[0].WebhookConfigs[0], templates, slog.New(slog.DiscardHandler)))(t)
	w.renewals(t, audience, func(int) string {
		shown = ""
		notifying := notify.WithReceiverName(notify.WithGroupLabels(notify.WithGroupKey(t.Context(), "all"), model.LabelSet{}), "api")
		testkit.Must(t, testkit.Err(receiver.Notify(notifying, &alert.Alert{Alert: model.Alert{Labels: model.LabelSet{"alertname": "a"}}})))
		return shown
	})
}
