package consumers

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt"
	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt/process"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// TestMain makes the test binary what Velero takes it for: its server, which it runs once more as the process of the plugins that it has itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "run-plugins" {
		framework.NewServer().Serve()
		return
	}
	flag.Parse()
	os.Args = []string{os.Args[0], "server"} // further arguments are passed on to plugins
	os.Exit(m.Run())
}

// Velero's plugin for AWS, one process as Velero's server runs it, stores objects with the credentials of each token in its turn. It has them of the
// keys token and credentialsFile of a Secret with tokens.
func TestVeleroStoresAcrossARenewal(t *testing.T) {
	w := newWorld(t)
	credentials := filepath.Join(t.TempDir(), "credentialsFile")
	testkit.Must(t, os.WriteFile(credentials, fmt.Appendf(nil, "[default]\nrole_arn=%s\nweb_identity_token_file=%s\nregion=eu-central-1\nsts_regional_endpoints=regional\n", role, w.token), 0o600))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", credentials)
	plugins := t.TempDir()
	testkit.Must(t, os.Symlink(controlplane.Program("velero-plugin-for-aws"), filepath.Join(plugins, "velero-plugin-for-aws")))
	log := logrus.New()
	log.SetOutput(io.Discard)
	registry := process.NewRegistry(plugins, log, logrus.InfoLevel)
	testkit.Must(t, registry.DiscoverPlugins())
	manager := clientmgmt.NewManager(log, logrus.InfoLevel, registry)
	t.Cleanup(manager.CleanupClients)
	w.deliver(t, audience)
	store := testkit.Need(manager.GetObjectStore("velero.io/aws"))(t)
	testkit.Must(t, store.Init(map[string]string{"bucket": "backups", "region": "eu-central-1", "s3Url": w.cloud.URL, "s3ForcePathStyle": "true", "checksumAlgorithm": ""}))
	w.renewals(t, audience, func(n int) string {
		key := fmt.Sprintf("backup-%d", n)
		testkit.Must(t, store.PutObject("backups", key, bytes.NewReader([]byte("a backup"))))
		return w.changedBy(t, key)
	})
}
