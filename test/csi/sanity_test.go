package csi_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

// driver starts credence-node csi with a folder in place of a kubelet's, and returns its socket.
func driver(t *testing.T) string {
	t.Helper()
	program := filepath.Join(os.Getenv("CREDENCE_BIN"), "credence-node")
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("CREDENCE_BIN names the folder of the programs: %v", err)
	}
	// Paths of sockets are short.
	kubelet, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(kubelet); err != nil {
			t.Error(err)
		}
	})
	kubeconfig := filepath.Join(kubelet, "kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(program, "csi", "--node-name", "node-1", "--kubelet-dir", kubelet, "--kubeconfig", kubeconfig)
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := process.Wait(); err != nil {
			t.Error(err)
		}
	})
	socket := filepath.Join(kubelet, "plugins_registry", "credence.sock")
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		connection, err := net.Dial("unix", socket)
		if err == nil {
			_ = connection.Close()
			return socket
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// withoutController are the checks of volumes that a controller creates, which a driver of ephemeral volumes does not have.
var withoutController = []string{"Controller Server", "should remove target path"}

func TestSanity(t *testing.T) {
	config := sanity.NewTestConfig()
	config.Address = driver(t)
	config.TargetPath = filepath.Join(t.TempDir(), "target")
	config.StagingPath = filepath.Join(t.TempDir(), "staging")
	sanity.GinkgoTest(&config)
	var ran []string
	ginkgo.ReportAfterSuite("list", func(report ginkgo.Report) {
		for _, each := range report.SpecReports {
			if each.State.Is(types.SpecStatePassed) && each.LeafNodeType.Is(types.NodeTypeIt) {
				ran = append(ran, each.FullText())
			}
		}
	})
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.SkipStrings = withoutController
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "CSI", suite, reporter)
	for _, want := range []string{"GetPluginInfo", "GetPluginCapabilities", "Probe", "NodeGetInfo", "NodeGetCapabilities", "NodePublishVolume", "NodeUnpublishVolume"} {
		if !slices.ContainsFunc(ran, func(name string) bool { return strings.Contains(name, want) }) {
			t.Errorf("no check of %s has passed, among %d: %q", want, len(ran), ran)
		}
	}
}
