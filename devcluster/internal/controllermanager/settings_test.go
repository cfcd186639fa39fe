package controllermanager

import (
	"strings"
	"testing"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"

	"github.com/credence-id/credence/devcluster/internal/pki"
)

// kube-controller-manager takes its settings, and signs service account tokens only where no other program does.
func TestControllerManagerTakesItsSettings(t *testing.T) {
	files := pki.Files{ServiceAccount: pki.Pair{Key: "/pki/sa.key"}, Authority: pki.Pair{Cert: "/pki/ca.crt", Key: "/pki/ca.key"}}
	for name, test := range map[string]struct {
		settings Settings
		key      string
		workers  int32
	}{
		"its own":   {Settings{PKI: files, ServiceCIDR: "10.96.0.0/16"}, "/pki/sa.key", 5},
		"another's": {Settings{PKI: files, SignsExternally: true, Extra: []string{"--concurrent-deployment-syncs=7"}}, "", 7},
	} {
		opts, err := options.NewKubeControllerManagerOptions()
		if err != nil {
			t.Fatal(err)
		}
		if err := parse(opts, test.settings.args()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := opts.Validate(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := opts.SAController.ServiceAccountKeyFile; got != test.key || opts.DeploymentController.ConcurrentDeploymentSyncs != test.workers || opts.Generic.LeaderElection.LeaderElect {
			t.Errorf("%s: signs with %q, %d workers, elects %t", name, got, opts.DeploymentController.ConcurrentDeploymentSyncs, opts.Generic.LeaderElection.LeaderElect)
		}
	}
}

func TestFlagsThatAreNone(t *testing.T) {
	for argument, want := range map[string]string{"--nonsense": "unknown flag: --nonsense", "word": `"word" is not a flag`} {
		opts, err := options.NewKubeControllerManagerOptions()
		if err != nil {
			t.Fatal(err)
		}
		if err := parse(opts, Settings{Extra: []string{argument}}.args()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", argument, err)
		}
	}
}
