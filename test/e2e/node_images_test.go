package e2e_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ociImage is an image as the OCI specifies it: its blobs by digest, and the descriptor of its manifest.
type ociImage struct {
	blobs    map[string][]byte
	manifest map[string]any
}

// busyboxImage has the static busybox of this machine as /busybox, and an empty file that makes it another image.
func busyboxImage(t *testing.T, file string) ociImage {
	t.Helper()
	busybox := need(exec.LookPath("busybox"))(t)
	program := need(os.ReadFile(busybox))(t)
	image := ociImage{blobs: map[string][]byte{}}
	add := func(kind string, content []byte) map[string]any {
		sum := sha256.Sum256(content)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		image.blobs[digest] = content
		return map[string]any{"mediaType": "application/vnd.oci.image." + kind, "digest": digest, "size": len(content)}
	}
	layer := add("layer.v1.tar", tarOf(t, map[string][]byte{"busybox": program, file: nil}))
	config := add("config.v1+json", jsonOf(t, map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "rootfs": map[string]any{"type": "layers", "diff_ids": []any{layer["digest"]}},
	}))
	image.manifest = add("manifest.v1+json", jsonOf(t, map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []any{layer},
	}))
	return image
}

// archive is the image of that name as an OCI layout.
func (i ociImage) archive(t *testing.T, name string) []byte {
	t.Helper()
	named := map[string]any{"annotations": map[string]string{"io.containerd.image.name": name}}
	for key, value := range i.manifest {
		named[key] = value
	}
	files := map[string][]byte{
		"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`),
		"index.json": jsonOf(t, map[string]any{"schemaVersion": 2, "manifests": []any{named}}),
	}
	for digest, content := range i.blobs {
		files["blobs/"+strings.Replace(digest, ":", "/", 1)] = content
	}
	return tarOf(t, files)
}

// ServeHTTP is the part of a registry that images are pulled from: every name and tag is this image.
func (i ociImage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v2/" {
		return
	}
	digest := path.Base(r.URL.Path)
	if path.Base(path.Dir(r.URL.Path)) == "manifests" {
		w.Header().Set("Content-Type", i.manifest["mediaType"].(string))
		if !strings.Contains(digest, ":") {
			digest = i.manifest["digest"].(string)
		}
	}
	content, found := i.blobs[digest]
	if !found {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Docker-Content-Digest", digest)
	http.ServeContent(w, r, "", metav1.Now().Time, bytes.NewReader(content))
}

func tarOf(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for name, content := range files {
		must(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
		need(archive.Write(content))(t)
	}
	must(t, archive.Close())
	return out.Bytes()
}

func jsonOf(t *testing.T, value any) []byte {
	t.Helper()
	return need(json.Marshal(value))(t)
}

// Images come from an archive, and from a registry that listens on this machine's loopback.
func imagesOfOthers(t *testing.T, p plane) {
	file := filepath.Join(t.TempDir(), "image.tar")
	must(t, os.WriteFile(file, busyboxImage(t, "imported").archive(t, "registry.example.com/team/archive:v1"), 0o600))
	got := p.must(t, "", "credence-devcluster", "import-images", "--dir", filepath.Join(p.Dir, "devcluster"), file)
	if want := "registry.example.com/team/archive:v1 is an image of the node: use it with imagePullPolicy: Never\n"; got != want {
		t.Errorf("import-images prints %q, want %q", got, want)
	}
	_, stderr, code := p.command(t, "", "credence-devcluster", "import-images", "--dir", filepath.Join(p.Dir, "devcluster"), program("credence"))
	if code != 1 || !strings.HasPrefix(stderr, "credence-devcluster: import images: ") {
		t.Errorf("import-images of a program: exit code %d, %q", code, stderr)
	}
	registry := httptest.NewServer(busyboxImage(t, "pulled"))
	defer registry.Close()

	namespace := p.namespace(t)
	for name, of := range map[string]struct {
		image string
		pull  corev1.PullPolicy
	}{
		"imported": {"registry.example.com/team/archive:v1", corev1.PullIfNotPresent},
		"pulled":   {strings.TrimPrefix(registry.URL, "http://") + "/team/registry:v1", corev1.PullAlways},
	} {
		pod := tokenPod(name, "")
		pod.Spec.HostNetwork, pod.Spec.Volumes, pod.Spec.RestartPolicy = false, nil, corev1.RestartPolicyNever
		pod.Spec.Containers[0] = corev1.Container{Name: "main", Image: of.image, ImagePullPolicy: of.pull, Command: []string{"/busybox", "echo", "runs"}}
		p.createPod(t, namespace, pod)
		p.waitForLog(t, namespace, name, "runs")
	}
}
