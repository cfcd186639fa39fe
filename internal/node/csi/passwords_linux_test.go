package csi_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/credence-id/credence/test/testkit"
)

// A volume has the passwords of the registries that it lists, fresh: with a new token, before the first of them ends, and once after a restart.
func TestPasswordsOfRegistries(t *testing.T) {
	w := newWorld(t)
	exchanges, refused, lives := 0, false, 1000
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		exchanges++
		if refused {
			response.WriteHeader(http.StatusBadRequest)
			_, _ = response.Write([]byte(`{"error":"invalid_grant"}`))
			return
		}
		_, _ = fmt.Fprintf(response, `{"access_token":"password-%d","expires_in":%d}`, exchanges, lives)
	}))
	defer server.Close()
	w.settings = `registries:
- {images: direct.example, audiences: [fruit], exchange: token-server}
- {images: other.example, audiences: [other], exchange: token-server}
- {images: exchanged.example/team, audiences: [fruit], exchange: token-exchange, settings: {endpoint: "` + server.URL + `"}}
`
	publish := func(registries string) error {
		call := w.call()
		call.VolumeContext["registries"] = registries
		_, err := w.driver.NodePublishVolume(t.Context(), call)
		return err
	}
	has := func(want string) {
		t.Helper()
		if got := w.file("config.json"); !strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(want))) {
			t.Errorf("config.json is %s, want %s in it", got, want)
		}
	}
	if err := publish("direct.example"); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "this node has none configured") {
		t.Errorf("a node without registries: %v", err)
	}
	w.start()
	for list, want := range map[string]string{
		"evil.example":                 `registry "evil.example" is not one of the configuration`,
		"direct.example,other.example": `the identity's token is for audience "fruit"`,
	} {
		if err := publish(list); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", list, err, want)
		}
		w.leavesNothing("after a refusal")
	}

	const list = "direct.example, exchanged.example/team"
	testkit.Must(t, publish(list))
	has("credence:password-1")
	has("credence:" + w.file("token"))
	before := w.requested()
	w.clock.Step(500 * time.Second)
	if err := publish(list); err != nil || w.requested() != before {
		t.Errorf("after half of a password's life: %d requests, %v", w.requested()-before, err)
	}
	w.clock.Step(350 * time.Second)
	if err := publish(list); err != nil || w.requested() != before+1 {
		t.Errorf("after four fifths of a password's life: %d requests, %v", w.requested()-before, err)
	}
	has("credence:password-2")
	w.start()
	for range 2 {
		if err := publish(list); err != nil || w.requested() != before+2 {
			t.Errorf("after a restart: %d requests, %v", w.requested()-before, err)
		}
	}
	has("credence:password-3")

	// The pod keeps its files while a registry refuses.
	refused = true
	w.clock.Step(850 * time.Second)
	if err := publish(list); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("a registry that refuses: %v", err)
	}
	has("credence:password-3")

	// One that gives passwords without a life is not asked all the time.
	refused, lives = false, 1
	w.clock.Step(10 * time.Minute)
	testkit.Must(t, publish(list))
	before = w.requested()
	w.clock.Step(10 * time.Second)
	if err := publish(list); err != nil || w.requested() != before {
		t.Errorf("ten seconds later: %d requests, %v", w.requested()-before, err)
	}
	testkit.Must(t, w.unpublish())
}
