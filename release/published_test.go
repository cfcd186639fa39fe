package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

const released = "v1.2.3"

// shell runs a script with the folder out as its own and the programs of CREDENCE_BIN, and returns what it printed.
func shell(t *testing.T, out, script string, environment ...string) (string, error) {
	t.Helper()
	bin, err := filepath.Abs(os.Getenv("CREDENCE_BIN"))
	if err != nil || os.Getenv("CREDENCE_BIN") == "" {
		t.Fatal("CREDENCE_BIN is not set to the folder of the programs that make test-all builds")
	}
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	command.Dir = out
	// The certificates and credentials of this machine's user play no part, and nothing is fetched from elsewhere.
	command.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + bin + ":" + os.Getenv("PATH"), "COSIGN_PASSWORD=secret"}, environment...)
	printed, err := command.CombinedOutput()
	return string(printed), err
}

// must is shell for a script that has to succeed.
func must(t *testing.T, out, script string, environment ...string) string {
	t.Helper()
	printed, err := shell(t, out, script, environment...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, printed)
	}
	return printed
}

// A release is made once, rebuilt elsewhere, and then used with the programs of others.
func TestPublishedRelease(t *testing.T) {
	t.Setenv("COSIGN_PASSWORD", "secret")
	keys, out := t.TempDir(), filepath.Join(t.TempDir(), "release")
	must(t, keys, "cosign generate-key-pair && cosign generate-key-pair --output-key-prefix other")
	published := httptest.NewServer(http.StripPrefix("/"+released, http.FileServer(http.Dir(out))))
	defer published.Close()
	source := clone(t, checkout)
	key, err := signerOf(filepath.Join(keys, "cosign.key"), released)
	if err != nil {
		t.Fatal(err)
	}
	from := parameters{Version: released, Platforms: []string{platform}, URL: published.URL}
	if err := makeRelease(t.Context(), io.Discard, source, out, from, key); err != nil {
		t.Fatal(err)
	}
	t.Run("images", func(t *testing.T) { testImages(t, source, out) })
	t.Run("archives", func(t *testing.T) { testArchives(t, source, out) })
	t.Run("chart", func(t *testing.T) { testChart(t, source, out) })
	t.Run("rebuild", func(t *testing.T) {
		if err := rebuild(t.Context(), io.Discard, clone(t, source), filepath.Join(out, provenanceFile)); err != nil {
			t.Error(err)
		}
	})
	t.Run("krew", func(t *testing.T) { testKrew(t, out) })
	t.Run("formula", func(t *testing.T) {
		of := read(t, out, "credence.rb")
		archive := "credence_" + released + "_linux_amd64.tar.gz"
		sum := must(t, out, "sha256sum "+archive+" | cut -d' ' -f1")
		url := published.URL + "/" + released + "/" + archive
		for _, want := range []string{`url "` + url + `"`, `sha256 "` + strings.TrimSpace(sum) + `"`, `version "1.2.3"`} {
			if !bytes.Contains(of, []byte(want+"\n")) {
				t.Errorf("the formula does not have %s:\n%s", want, of)
			}
		}
	})
	t.Run("signatures", func(t *testing.T) { testSignatures(t, out, keys) })
}

// testChart compares the chart with what Helm itself packages. Its images have the tag of the release.
func testChart(t *testing.T, source, out string) {
	folder := t.TempDir()
	render := " template credence %s --namespace credence-system --kube-version v1.37.0 --set issuer=https://id.example.com"
	must(t, folder, "helm package "+filepath.Join(source, "deploy", "chart", "credence")+" --version "+released[1:]+" --app-version "+released)
	file := "credence-" + released[1:] + ".tgz"
	ofHelm, ours := must(t, folder, fmt.Sprintf("helm"+render, file)), must(t, out, fmt.Sprintf("helm"+render, file))
	if ofHelm != ours {
		t.Errorf("the chart of the release renders\n%s\nthat of Helm\n%s", ours, ofHelm)
	}
	if !strings.Contains(ours, "/credence-server:"+released+`"`) {
		t.Errorf("the images do not have the tag %s", released)
	}
}

// testKrew validates the manifest with krew's own program, and installs the plugin from an index.
func testKrew(t *testing.T, out string) {
	folder := t.TempDir()
	printed := must(t, folder, `
		mkdir bin && ln -s "$(command -v krew)" bin/kubectl-krew && export PATH="$PWD/bin:$PATH" KREW_ROOT="$PWD/root"
		git init --quiet index && mkdir index/plugins && cp "$OUT/credence.yaml" index/plugins/
		git -C index add . && git -C index -c user.name=a -c user.email=a@example.com commit --quiet -m one
		validate-krew-manifest -manifest index/plugins/credence.yaml
		kubectl krew index add local "$PWD/index" && kubectl krew install local/credence && root/bin/kubectl-credence version`, "OUT="+out)
	for _, want := range []string{"all 1 spec.platforms installed fine", "credence " + released + " (commit"} {
		if !strings.Contains(printed, want) {
			t.Errorf("krew did not print %q:\n%s", want, printed)
		}
	}
}

// testSignatures pushes to the registry of the distribution project, which does not list referrers, and verifies with cosign.
func testSignatures(t *testing.T, out, keys string) {
	at := distribution(t) + "/credence-id"
	if err := pushImages(t.Context(), io.Discard, out, at); err != nil {
		t.Fatal(err)
	}
	must(t, out, `mkdir pulled && cp "$KEYS/cosign.pub" . && ln -s "$(command -v krew)" "$KEYS/kubectl-krew"`, "KEYS="+keys)
	verified := 0
	for line := range strings.Lines(documented(t)) {
		printed := must(t, out, `export PATH="$KREW_ROOT:$PATH"; `+line, "REGISTRY="+at, "KREW_ROOT="+keys)
		// cosign takes a statement that names the image for a signature, too.
		if strings.HasPrefix(line, "cosign verify ") && !strings.Contains(printed, `"type":"`+signedType+`"`) {
			t.Errorf("%s finds no signature of the image alone:\n%s", line, printed)
		}
		if before, after, ok := strings.Cut(line, "cosign.pub"); ok {
			verified++
			if printed, err := shell(t, out, before+keys+"/other.pub"+after, "REGISTRY="+at); err == nil {
				t.Errorf("%s verifies with the key of another:\n%s", line, printed)
			}
		}
	}
	if verified != 5 {
		t.Errorf("the document has %d commands that verify, want 5", verified)
	}
	for _, script := range []string{
		"cosign verify-blob --key $KEY --insecure-ignore-tlog --bundle checksums.txt.sigstore.json images.tar",
		"cosign verify-blob-attestation --key $KEY --insecure-ignore-tlog --type slsaprovenance1 --bundle provenance.json.sigstore.json $KEY",
	} {
		if printed, err := shell(t, out, script, "KEY="+keys+"/cosign.pub"); err == nil {
			t.Errorf("%s verifies another file:\n%s", script, printed)
		}
	}
	var pushed bytes.Buffer
	err := pushImages(t.Context(), &pushed, out, at+"/again")
	if err := errors.Join(err, writeFile(keys, "pushed", pushed.Bytes())); err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs(checkout)
	if err != nil {
		t.Fatal(err)
	}
	// The commands for signatures without a key, here with another key in place of an identity and of the public log.
	must(t, out, `
		cosign signing-config create --out "$KEYS/none.json"
		make -C "$CHECKOUT" sign-keyless BIN="$(dirname "$PWD")" PUSHED="$KEYS/pushed" \
			COSIGN_FLAGS="--key $KEYS/other.key --signing-config $KEYS/none.json"
		by="--insecure-ignore-tlog --key $KEYS/other.pub"
		cosign verify $by $AT/again/credence-node:`+released+`
		cosign verify-blob $by --bundle checksums.txt.sigstore.json checksums.txt
		cosign verify-blob-attestation $by --type slsaprovenance1 --bundle provenance.json.sigstore.json images.tar`,
		"AT="+at, "KEYS="+keys, "CHECKOUT="+top)
	if !bytes.Equal(read(t, out+"/pulled", "credence-1.2.3.tgz"), read(t, out, "credence-1.2.3.tgz")) {
		t.Error("Helm pulls another chart than that of the release")
	}
}

// documented returns the commands of the document for those who check a release.
func documented(t *testing.T) string {
	t.Helper()
	text := string(read(t, checkout, "docs/howto/check-a-release.md"))
	var commands strings.Builder
	for _, block := range regexp.MustCompile("(?s)\n```sh\n(.*?)```\n").FindAllStringSubmatch(text, -1) {
		commands.WriteString(block[1])
	}
	return strings.NewReplacer("0.1.0", released[1:], "helm pull", "helm pull --plain-http --destination pulled").Replace(commands.String())
}

// distribution starts a registry, and returns its host.
func distribution(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host, folder := free.Addr().String(), t.TempDir()
	free.Close()
	config := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\nlog: {level: error}\n", folder, host)
	if err := os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(os.Getenv("CREDENCE_BIN"), "registry")
	command := exec.CommandContext(t.Context(), program, "serve", filepath.Join(folder, "config.yaml"))
	command.Env = []string{"OTEL_TRACES_EXPORTER=none"}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() }) // the context of the test kills it before
	for tick := time.Tick(50 * time.Millisecond); ; <-tick {
		if answer, err := http.Get("http://" + host + "/v2/"); err == nil {
			answer.Body.Close()
			return host
		} else if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// A release that can't be made, or a provenance that can't be checked, is refused before anything is built.
func TestRefusedReleases(t *testing.T) {
	source := clone(t, checkout)
	commit := head(t, source)
	write := func(folder, called, content string) {
		t.Helper()
		if err := writeFile(folder, called, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	provenanceOf := func(folder, version, commit string, change func(*provenance)) string {
		t.Helper()
		p := newProvenance(parameters{Version: version, Platforms: []string{platform}}, commit)
		if change != nil {
			change(p)
		}
		text, err := json.Marshal(statement{statementType, nil, provenanceType, p})
		if err != nil {
			t.Fatal(err)
		}
		write(folder, provenanceFile, string(text))
		return filepath.Join(folder, provenanceFile)
	}
	release := func(out, version, platform string) error {
		return makeRelease(t.Context(), io.Discard, source, out, parameters{Version: version, Platforms: []string{platform}}, nil)
	}
	check := func(file string) error { return rebuild(t.Context(), io.Discard, source, file) }
	keyOf := func(key, version string) error {
		_, err := signerOf(key, version)
		return err
	}
	other, older, same, images, key := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	provenanceOf(other, "v0.0.9", commit, nil)
	provenanceOf(older, released, strings.Repeat("0", 40), nil)
	provenanceOf(same, released, commit, nil)
	write(images, "images.tar", "")
	write(key, "cosign.key", "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"version without v", release(filepath.Join(t.TempDir(), "out"), "0.1.0", platform), `invalid version "0.1.0"`},
		{"another version in out", release(other, released, platform), "has files of another version or commit: remove it"},
		{"another commit in out", release(older, released, platform), "has files of another version or commit: remove it"},
		{"images in out", release(images, released, platform), "has files of another version or commit: remove it"},
		{"images in place of a release", makeImages(t.Context(), io.Discard, source, t.TempDir(), same, nil), "has a release"},
		{"the same release in out", release(same, released, "linux/"), `invalid platform "linux/"`},
		{"no Linux", release(same, released, "darwin/arm64"), "images need a platform of Linux"},
		{"version without a key", keyOf("", released), "no key: KEY=cosign.key"},
		{"unsigned by choice", keyOf("none", released), ""},
		{"commit without a key", keyOf("", ""), ""},
		{"no file with the key", keyOf(filepath.Join(key, "none.key"), released), "no such file"},
		{"key of another password", keyOf(filepath.Join(key, "cosign.key"), released), "with the password in COSIGN_PASSWORD"},
		{"rebuild of another commit", check(provenanceOf(t.TempDir(), released, "ab", nil)), "git checkout ab"},
		{"rebuild with another Go", check(provenanceOf(t.TempDir(), released, commit, func(p *provenance) {
			p.BuildDefinition.InternalParameters.Go = "go1.2"
		})), "was built by go1.2, and this is " + runtime.Version() + ": export GOTOOLCHAIN=go1.2"},
		{"rebuild of something else", check(provenanceOf(t.TempDir(), released, commit, func(p *provenance) {
			p.BuildDefinition.BuildType = "https://example.com"
		})), "does not have the provenance of a release of Credence"},
	} {
		if c.err == nil && c.want != "" || c.err != nil && (c.want == "" || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v, want an error with %q", c.name, c.err, c.want)
		}
	}
	write(source, "new.go", "package new")
	if err := release(t.TempDir(), released, platform); err == nil || !strings.Contains(err.Error(), "these changes are not committed:\n?? new.go") {
		t.Errorf("a release of a checkout with a new file: %v", err)
	}
}

func TestCompare(t *testing.T) {
	of := func(name, sum string) subject { return subject{name, map[string]string{"sha256": sum}} }
	published := []subject{of("a", "1"), of("b", "2"), of("c", "3")}
	if different := compare(published, published); len(different) != 0 {
		t.Errorf("a release differs from itself: %q", different)
	}
	for name, attack := range map[string][]subject{
		"a second digest of a name": {of("a", "9"), of("a", "1"), of("b", "2"), of("c", "3")},
		"another algorithm":         {of("a", "1"), of("b", "2"), of("c", "3"), {"d", map[string]string{"sha512": "4"}}},
		"no digest":                 {of("a", "1"), of("b", "2"), of("c", "3"), {"d", nil}},
	} {
		if different := compare(attack, published); len(different) != 1 {
			t.Errorf("%s: %q", name, different)
		}
	}
	have := strings.Join(compare(published, []subject{of("a", "1"), of("b", "4"), of("d", "5")}), "\n")
	if want := "b: 2, rebuilt: 4\nc: 3, rebuilt: missing\nd: missing, rebuilt: 5"; have != want {
		t.Errorf("compare returns\n%s\nwant\n%s", have, want)
	}
}
