package registry_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/test/testkit"
)

// The file has the registries of the list, and is of use until the first of its passwords ends.
func TestDockerConfig(t *testing.T) {
	lives := 120
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"access_token":"new","expires_in":%d}`, lives)
	}))
	defer server.Close()
	config := parse(t, `
registries:
- {images: a.example/team, audiences: [registry], exchange: token-server}
- {images: b.example, audiences: [registry], exchange: token-exchange, settings: {endpoint: "`+server.URL+`", username: robot}}
- {images: c.example, audiences: [other], exchange: token-server}
`)
	for list, want := range map[string]struct {
		logins  map[string]string
		expires time.Duration
	}{
		"a.example/team":            {map[string]string{"a.example/team": "credence:" + secret}, time.Hour},
		"a.example/team, b.example": {map[string]string{"a.example/team": "credence:" + secret, "b.example": "robot:new"}, 2 * time.Minute},
	} {
		got := testkit.Need(config.DockerConfig(t.Context(), list, token(), now))(t)
		var file struct {
			Auths map[string]struct{ Auth string }
		}
		if err := json.Unmarshal(got.Content, &file); err != nil || len(file.Auths) != len(want.logins) {
			t.Errorf("%s: %s, %v", list, got.Content, err)
		}
		for images, login := range want.logins {
			if file.Auths[images].Auth != base64.StdEncoding.EncodeToString([]byte(login)) {
				t.Errorf("%s: %s has %q", list, images, file.Auths[images].Auth)
			}
		}
		if !got.Expires.Equal(noon.Add(want.expires)) {
			t.Errorf("%s: it ends at %s", list, got.Expires)
		}
	}
	// A password outlives its token, and the next token brings another.
	lives = 12 * 3600
	if got, err := config.DockerConfig(t.Context(), "b.example", token(), now); err != nil || !got.Expires.Equal(noon.Add(time.Hour)) {
		t.Errorf("it ends at %s, %v", got.Expires, err)
	}
	for list, want := range map[string]string{
		"":                         `registry "" is not one of the configuration`,
		"a.example":                `registry "a.example" is not one`,
		"a.example/team,":          `registry "" is not one`,
		"a.example/team/app":       "is not one",
		"evil.example":             "is not one",
		"a.example/team,c.example": `get credentials for images of c.example: the identity's token is for audience "registry"`,
	} {
		if got, err := config.DockerConfig(t.Context(), list, token(), now); err == nil || !strings.Contains(err.Error(), want) || got.Content != nil {
			t.Errorf("%q: %s, %v, want %q", list, got.Content, err, want)
		}
	}
}
