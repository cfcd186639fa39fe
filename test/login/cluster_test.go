package login_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// trust is the configuration by which the cluster believes the provider, but for tokens whose number it refuses.
const trust = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: %s
    audiences: [kubernetes, brief]
    audienceMatchPolicy: MatchAny
    certificateAuthority: |
      %s
  claimValidationRules:
  - expression: '!(claims.number in [%s])'
    message: this token was revoked
  claimMappings:
    username: {claim: sub, prefix: "idp:"}
    groups: {claim: groups, prefix: "idp:"}
anonymous:
  enabled: true
  conditions:
  - path: /readyz
`

// cluster is an API server that trusts the provider.
type cluster struct {
	configuration string
	ca            string
	issuer        string
	admin         *rest.Config
}

func startCluster() (*cluster, error) {
	provider, err := sharedProvider()
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(provider.caFile)
	if err != nil {
		return nil, err
	}
	c := &cluster{configuration: filepath.Join(scratch, "trust.yaml"), ca: string(ca), issuer: provider.issuer}
	if err := c.write(""); err != nil {
		return nil, err
	}
	running, err := controlplane.Start(context.Background(), filepath.Join(scratch, "cluster"), "--port", "0", "--authentication-config", c.configuration)
	if err != nil {
		return nil, err
	}
	atEnd(running.Stop)
	c.admin = running.Admin
	return c, nil
}

func (c *cluster) get(ctx context.Context, path string) ([]byte, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return nil, err
	}
	return client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
}

func (c *cluster) write(refused string) error {
	text := fmt.Sprintf(trust, c.issuer, strings.ReplaceAll(strings.TrimSpace(c.ca), "\n", "\n      "), refused)
	if err := os.WriteFile(c.configuration+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(c.configuration+".new", c.configuration)
}

var reloads = regexp.MustCompile(`(?m)^apiserver_authentication_config_controller_automatic_reloads_total\{.*status="success"\} (\S+)$`)

// reloaded is how often the API server has taken a new configuration.
func (c *cluster) reloaded(t *testing.T) float64 {
	t.Helper()
	metrics := testkit.Need(c.get(t.Context(), "/metrics"))(t)
	total := 0.0
	for _, match := range reloads.FindAllSubmatch(metrics, -1) {
		n := testkit.Need(strconv.ParseFloat(string(match[1]), 64))(t)
		total += n
	}
	return total
}

// refuse has the API server refuse the token of a number from now on.
func (c *cluster) refuse(t *testing.T, number string) {
	t.Helper()
	before := c.reloaded(t)
	testkit.Must(t, c.write(strconv.Quote(number)))
	waitFor(t, func() error {
		if c.reloaded(t) == before {
			return errors.New("the API server has not read its configuration anew")
		}
		return nil
	})
}
