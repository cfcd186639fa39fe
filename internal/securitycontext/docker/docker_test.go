package docker_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/internal/securitycontext/docker"
)

func TestNewValueName(t *testing.T) {
	content := append(bytes.Repeat([]byte{0x0f}, 20), bytes.Repeat([]byte{0xa0}, 21)...)
	random := bytes.NewReader(content)
	got, err := docker.NewValueName(random)
	if err != nil {
		t.Fatal(err)
	}
	want := "k8s-cred-spec-" + strings.Repeat("0f", 20) + strings.Repeat("a0", 20)
	if got != want {
		t.Errorf("name is %q, want %q", got, want)
	}
	if random.Len() != 1 {
		t.Errorf("%d bytes were read, want 40", 41-random.Len())
	}
}

func TestNewValueNameNeedsAllItsRandomness(t *testing.T) {
	for _, n := range []int{0, 1, 39} {
		name, err := docker.NewValueName(bytes.NewReader(make([]byte, n)))
		if name != "" || err == nil {
			t.Errorf("with %d bytes: %q, %v, want an error and no name", n, name, err)
		}
	}
	broken := errors.New("no entropy")
	if _, err := docker.NewValueName(io.MultiReader(bytes.NewReader(make([]byte, 39)), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's own error", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestIsValueName(t *testing.T) {
	ours, err := docker.NewValueName(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if !docker.IsValueName(ours) {
		t.Errorf("%q is not known as ours", ours)
	}
	digits := strings.TrimPrefix(ours, "k8s-cred-spec-")
	for why, name := range map[string]string{
		"nothing":             "",
		"without digits":      "k8s-cred-spec-",
		"one digit less":      ours[:len(ours)-1],
		"one digit more":      ours + "0",
		"without a prefix":    digits,
		"something before":    "x" + ours,
		"a line after":        ours + "\n",
		"a line before":       "x\n" + ours,
		"upper case":          strings.ToUpper(ours),
		"upper case digits":   "k8s-cred-spec-" + strings.Repeat("A", 80),
		"not hexadecimal":     "k8s-cred-spec-" + strings.Repeat("g", 80),
		"another prefix":      "k8s-cred-specs-" + digits,
		"an underscore":       "k8s_cred_spec_" + digits,
		"a file of the admin": "WebApp01.json",
	} {
		if docker.IsValueName(name) {
			t.Errorf("%s: %q is taken for ours, and would be removed", why, name)
		}
	}
}

func TestSecurityOptionIsReadBack(t *testing.T) {
	ours, err := docker.NewValueName(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := docker.SecurityOption(ours), "credentialspec=registry://"+ours; got != want {
		t.Errorf("option is %q, want %q", got, want)
	}
	other := "k8s-cred-spec-" + strings.Repeat("0", 80)
	got := docker.ValueNames([]string{
		"seccomp=unconfined",
		docker.SecurityOption(ours),
		"credentialspec=file://WebApp01.json",
		"credentialspec=registry://WebApp01",
		"credentialspec=raw://{}",
		"credentialspec=" + ours,
		"credentialspec",
		"",
		"CredentialSpec=Registry://" + strings.ToUpper(other),
	})
	if diff := cmp.Diff([]string{ours, other}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// Security options are input of a container's creator: only names of ours are read from them.
func FuzzValueNames(f *testing.F) {
	f.Add("credentialspec=registry://k8s-cred-spec-" + strings.Repeat("0", 80))
	f.Add("CREDENTIALSPEC=REGISTRY://K8S-CRED-SPEC-" + strings.Repeat("F", 80))
	f.Add("credentialspec=file://\xff")
	f.Fuzz(func(t *testing.T, option string) {
		for _, name := range docker.ValueNames([]string{option}) {
			if !docker.IsValueName(name) || len(docker.ValueNames([]string{docker.SecurityOption(name)})) != 1 {
				t.Errorf("%q was read as %q", option, name)
			}
		}
	})
}
