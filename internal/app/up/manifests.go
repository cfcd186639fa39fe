//go:build unix

package up

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/app/up/cluster"
	"github.com/credence-id/credence/internal/app/up/home"
	"github.com/credence-id/credence/internal/minors"
)

// manifests are the objects that components need in the cluster.
type manifests struct {
	objects []*unstructured.Unstructured
	// others belong to options that were chosen for another run, and are taken away.
	others []*unstructured.Unstructured
	// sum stands for the objects and the cluster; applied is true if just these were applied to it before.
	sum     string
	applied bool
}

// minor is that of the cluster.
func (i installation) loadManifests(minor int) (manifests, error) {
	objects, err := deploy.Manifests(i.options()...)
	if err != nil {
		return manifests{}, err
	}
	minors.All().Trim(objects, minor)
	authority, err := os.ReadFile(i.authorityFile())
	if err != nil {
		return manifests{}, fmt.Errorf("read the certificate authority: %w", err)
	}
	if actions := i.reported(); len(actions) > 0 {
		if err := deploy.Reported(objects, actions...); err != nil {
			return manifests{}, err
		}
	}
	for _, object := range objects {
		if err := cluster.PointWebhooks(object, i.config.Port+webhookPort, authority); err != nil {
			return manifests{}, err
		}
	}
	others, err := deploy.Others(i.options()...)
	if err != nil {
		return manifests{}, err
	}
	content, err := json.Marshal(objects)
	if err != nil {
		return manifests{}, fmt.Errorf("encode manifests: %w", err)
	}
	sum := sha256.Sum256(append(content, authority...))
	loaded := manifests{objects: objects, others: others, sum: hex.EncodeToString(sum[:])}
	// A file that is missing or cannot be read only costs the time of applying first.
	last, _ := os.ReadFile(i.appliedManifestsFile())
	loaded.applied = strings.TrimSpace(string(last)) == loaded.sum
	return loaded, nil
}

// options are what belongs to the flags that were given to components.
func (i installation) options() []deploy.Option {
	given := " " + strings.Join(i.extra["webhook"], " ") + " "
	var options []deploy.Option
	if strings.Contains(given, "WindowsGMSAAnnotations=true") {
		options = append(options, deploy.GMSAAnnotations)
	}
	if strings.Contains(given, " --gmsa-require-user ") || strings.Contains(given, " --gmsa-require-user=true ") {
		options = append(options, deploy.GMSARequireUser)
	}
	if strings.Contains(given, " --client-ca-file= ") {
		options = append(options, deploy.ReviewPaths)
	}
	if strings.Contains(strings.Join(i.extra["agent"], " "), "--pods-port") {
		options = append(options, deploy.AgentPods)
	}
	if i.imageRegistries != "" {
		options = append(options, deploy.ImageCredentials)
	}
	return options
}

// reported are the actions of admission policies that belong to --gmsa-enforcement; none: refusals are enforced.
func (i installation) reported() []string {
	actions := map[string][]string{"--gmsa-enforcement=Warn": {"Warn", "Audit"}, "--gmsa-enforcement=Audit": {"Audit"}}
	var last []string
	for _, argument := range i.extra["webhook"] {
		if strings.HasPrefix(argument, "--gmsa-enforcement=") {
			last = actions[argument]
		}
	}
	return last
}

func (s *starter) apply(ctx context.Context, m manifests) error {
	end := s.tracker.Begin("manifests", "applying namespace, roles and bindings")
	if err := s.admin.Apply(ctx, m.objects); err != nil {
		return err
	}
	if err := s.admin.Remove(ctx, m.others); err != nil {
		return err
	}
	if err := home.Keep(s.appliedManifestsFile(), []byte(m.sum+"\n"), 0o600); err != nil {
		return err
	}
	end(fmt.Sprintf("%d objects applied", len(m.objects)))
	return nil
}
