package install

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/controlplane"
	"github.com/credence-id/credence/test/testkit"
)

// images are those of the commit, in a registry of the distribution project on the loopback of this machine, which the node reaches too.
type images struct {
	program  string // that builds and pushes them
	folder   string // of the layout
	registry string // with the path of their repositories
	tag      string
	digests  []string // values of the chart, by which it has them without the tag
}

// imagesOfTheCommit builds the images of what is committed, and pushes them.
func imagesOfTheCommit(t *testing.T) *images {
	t.Helper()
	i := &images{program: filepath.Join(t.TempDir(), "release"), folder: t.TempDir(), registry: startRegistry(t) + "/credence"}
	source := filepath.Join(t.TempDir(), "checkout")
	for _, command := range []*exec.Cmd{
		exec.CommandContext(t.Context(), "git", "clone", "--quiet", "../..", source),
		exec.CommandContext(t.Context(), "go", "build", "-C", "../../release", "-o", i.program, "."),
	} {
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command.Args, err, output)
		}
	}
	_, rest, found := strings.Cut(i.release(t, "images", "--source", source, "--platform", "linux/amd64"), "credence-server:")
	if !found {
		t.Fatal("no image was built")
	}
	i.tag = strings.Fields(rest)[0]
	for _, pushed := range regexp.MustCompile(`(?m)^pushed \S+/(\S+):\S+@(sha256:\S+)$`).FindAllStringSubmatch(i.release(t, "push", i.registry), -1) {
		i.digests = append(i.digests, "image.digests."+pushed[1]+"="+pushed[2])
	}
	return i
}

// pushAs pushes the same images with another tag.
func (i *images) pushAs(t *testing.T, tag string) {
	t.Helper()
	index := filepath.Join(i.folder, "layout", "index.json")
	text, err := os.ReadFile(index)
	if err == nil {
		err = os.WriteFile(index, bytes.ReplaceAll(text, []byte(":"+i.tag+`"`), []byte(":"+tag+`"`)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	i.release(t, "push", i.registry)
}

func (i *images) release(t *testing.T, arguments ...string) (printed string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), i.program, append(arguments, "--out", i.folder)...).CombinedOutput()
	if err != nil {
		t.Fatalf("release %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return string(output)
}

// values are those by which the chart has them.
func (i *images) values(tag string) []string {
	return []string{"image.registry=" + i.registry, "image.tag=" + tag}
}

// startRegistry returns the address of a registry, which ends with the test.
func startRegistry(t *testing.T) (address string) {
	t.Helper()
	port, err := testkit.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address = fmt.Sprintf("127.0.0.1:%d", port)
	folder := t.TempDir()
	text, err := json.Marshal(map[string]any{
		"version": "0.1", "log": map[string]any{"level": "warn"}, "http": map[string]any{"addr": address},
		"storage": map[string]any{"filesystem": map[string]any{"rootdirectory": filepath.Join(folder, "images")}},
	})
	config := filepath.Join(folder, "config.json")
	if err == nil {
		err = os.WriteFile(config, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(controlplane.Program("registry"), "serve", config)
	command.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	if err := command.Start(); err != nil {
		t.Fatalf("%v; make test-all builds it: cd test/e2e/registry && go build -o ../../../bin/ github.com/distribution/distribution/v3/cmd/registry", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // it has nothing to end in order
		_ = command.Wait()
	})
	eventually(t, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v2/", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("the registry answers %s", answer.Status)
		}
		return nil
	})
	return address
}
