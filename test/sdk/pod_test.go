package sdk

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/targets"
	"github.com/credence-id/credence/test/testkit"
)

// pod is a process with the files and variables that an adapter gives to pods, and with nothing else.
type pod struct {
	cloud     cloud
	place     target.Place
	injection target.Injection
	authority string

	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// config is a providerConfig that the adapter of a cloud has checked.
func config(t *testing.T, cloud, providerConfig string) target.Config {
	t.Helper()
	if !targets.Known(cloud) {
		t.Fatalf("%s has no adapter", cloud)
	}
	config, problems := targets.For(cloud).Parse([]byte(providerConfig), field.NewPath("providerConfig"))
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	return config
}

// newPod makes a pod whose token is not there yet. authority is the file with the only certificate that it trusts.
func newPod(t *testing.T, c cloud, authority string) *pod {
	t.Helper()
	return newPodAt(t, c, target.PodPlace(target.Linux, target.DefaultMountPath, workloadIdentity(c.name).Name), authority)
}

// newPodAt is newPod with the volume at a place.
func newPodAt(t *testing.T, c cloud, place target.Place, authority string) *pod {
	t.Helper()
	testkit.Must(t, os.RemoveAll(place.Dir))
	return &pod{cloud: c, place: place, injection: config(t, c.name, c.providerConfig).Injection(place), authority: authority}
}

// deliver writes the files of the pod's volume as the kubelet does: into a new folder, to which a link is then pointed.
func (p *pod) deliver(t *testing.T, token identity.Token) {
	t.Helper()
	files := map[string]string{target.TokenFile: token.Reveal()}
	for _, key := range p.injection.Keys {
		for _, mount := range p.injection.Mounts {
			if key.Name == mount {
				files[key.Name] = key.Content
			}
		}
	}
	testkit.Must(t, os.MkdirAll(p.place.Dir, 0o755))
	folder := testkit.Need(os.MkdirTemp(p.place.Dir, "..version"))(t)
	for name, content := range files {
		testkit.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	link, next := filepath.Join(p.place.Dir, "..data"), filepath.Join(p.place.Dir, "..data_tmp")
	before, _ := os.Readlink(link)
	testkit.Must(t, os.Symlink(filepath.Base(folder), next))
	testkit.Must(t, os.Rename(next, link))
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(p.place.Dir, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	if before != "" {
		testkit.Must(t, os.RemoveAll(filepath.Join(p.place.Dir, before)))
	}
}

// start runs the container, anew if it runs already.
func (p *pod) start(t *testing.T, more ...string) {
	t.Helper()
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	program, home := p.cloud.command, t.TempDir()
	if program == nil {
		// As in an image that sets none; nothing is written there.
		program, home = []string{"/proc/self/exe", podArgument, p.cloud.name}, "/"
	}
	command := exec.CommandContext(t.Context(), program[0], program[1:]...)
	command.Dir = "/"
	// That the stand-in's certificate is trusted is the one thing that is not from Credence.
	command.Env = append([]string{"HOME=" + home, "SSL_CERT_FILE=" + p.authority, "AWS_CA_BUNDLE=" + p.authority, "SSL_CERT_DIR=" + t.TempDir()}, more...)
	for _, variable := range p.injection.Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	var stderr strings.Builder
	command.Stderr = &stderr
	stdin := testkit.Need(command.StdinPipe())(t)
	stdout := testkit.Need(command.StdoutPipe())(t)
	testkit.Must(t, command.Start())
	p.stdin, p.stdout = stdin, bufio.NewReader(stdout)
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := command.Wait(); err != nil && t.Context().Err() == nil {
			t.Errorf("container: %v\n%s", err, stderr.String())
		}
	})
}

// ask lets the container get credentials.
func (p *pod) ask(t *testing.T) answer {
	t.Helper()
	testkit.Need(io.WriteString(p.stdin, "\n"))(t)
	line, err := p.stdout.ReadBytes('\n')
	testkit.Must(t, err, "read the answer of the container")
	var got answer
	testkit.Must(t, json.Unmarshal(line, &got))
	return got
}
