//go:build linux

package kubelet

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/configfiles"
	utilfs "k8s.io/kubernetes/pkg/util/filesystem"

	"github.com/credence-id/credence/devcluster/internal/pki"
)

// The kubelet takes its flags and its configuration, and reads no field of it as another one.
func TestKubeletTakesItsSettings(t *testing.T) {
	folder := t.TempDir()
	settings := Settings{
		PKI: pki.Files{Authority: pki.Pair{Cert: "/pki/ca.crt"}}, Node: pki.NodeFiles{Kubelet: pki.Pair{Cert: "/pki/kubelet.crt", Key: "/pki/kubelet.key"}},
		Kubeconfig: "/kubelet.kubeconfig", Name: "node-1", Address: "10.98.0.1", DNS: "10.96.0.10", Domain: "cluster.local", Folder: folder,
		Runtime: "/run/containerd.sock", CgroupRoot: "/credence", ImageCredentials: "/bin", ImageCredentialsConfig: "/credentials.yaml",
	}
	if err := settings.Write(); err != nil {
		t.Fatal(err)
	}
	flags, parsed := options.NewKubeletFlags(), pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	flags.AddFlags(parsed)
	if err := parsed.Parse(settings.Args()); err != nil {
		t.Fatal(err)
	}
	if err := options.ValidateKubeletFlags(flags); err != nil {
		t.Error(err)
	}
	if flags.HostnameOverride != "node-1" || flags.RootDirectory != settings.Root() || flags.NodeIP != "10.98.0.1" {
		t.Errorf("the kubelet has the flags %+v", flags)
	}
	loader, err := configfiles.NewFsLoader(&utilfs.DefaultFs{}, flags.KubeletConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	config, err := loader.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := validation.ValidateKubeletConfiguration(config, utilfeature.DefaultFeatureGate); err != nil {
		t.Error(err)
	}
	if config.Authentication.Anonymous.Enabled || config.Authentication.X509.ClientCAFile != "/pki/ca.crt" || config.Address != "10.98.0.1" || config.CgroupRoot != "/credence" {
		t.Errorf("the kubelet has the configuration %+v", config)
	}
	// All that the kubelet keeps is in the folder.
	for _, path := range []string{settings.Root(), settings.StaticPods(), config.PodLogsDir, config.VolumePluginDir, config.ResolverConfig} {
		if !strings.HasPrefix(path, folder+"/") {
			t.Errorf("the kubelet keeps %s", path)
		}
	}
}

// Without a program for credentials of images the kubelet is given no flag for one.
func TestArgumentsWithoutImageCredentials(t *testing.T) {
	for _, argument := range (Settings{}).Args() {
		if strings.HasPrefix(argument, "--image-credential") {
			t.Error(argument)
		}
	}
}
