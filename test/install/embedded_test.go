package install

import (
	"os"
	"path/filepath"
	"testing"
)

// etcdVolume makes a volume for the embedded etcd of the chart.
func (p *partial) etcdVolume(t *testing.T, i *installation) {
	t.Helper()
	folder := filepath.Join(i.folder, "etcd-volume")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	volumeIn(t, p.client, "etcd", "credence-etcd", folder)
}
