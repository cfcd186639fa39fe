package login_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"
)

// programs are what the tests need, or they are skipped.
func programs(t *testing.T) (node, chromium string) {
	t.Helper()
	if _, err := os.Stat("testdata/node_modules/.installed"); err != nil {
		t.Skip("needs a certified OpenID provider: run test/login/programs.sh")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node.js: run test/login/programs.sh")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if chromium, err = exec.LookPath(name); err == nil {
			return node, chromium
		}
	}
	t.Skip("needs Chromium: run test/login/programs.sh")
	return "", ""
}

// world is a running provider, and a person with a browser.
type world struct {
	issuer, caFile string
	node, chromium string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	w.node, w.chromium = programs(t)
	folder := t.TempDir()
	w.caFile = filepath.Join(folder, "ca.pem")
	keyFile := filepath.Join(folder, "key.pem")
	certificate(t, w.caFile, keyFile)

	command := exec.Command(w.node, "testdata/provider.mjs", keyFile, w.caFile, "http://127.0.0.1/callback")
	var complaints bytes.Buffer
	command.Stderr = &complaints
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(10*time.Minute, func() { _ = command.Process.Kill() })
	t.Cleanup(func() {
		deadline.Stop()
		_ = input.Close() // the provider ends with its input
		kill := time.AfterFunc(10*time.Second, func() { _ = command.Process.Kill() })
		defer kill.Stop()
		if err := command.Wait(); err != nil || t.Failed() {
			t.Logf("the provider: %v\n%s", err, complaints.String())
		}
	})
	var said struct{ Issuer string }
	lines := bufio.NewScanner(output)
	for lines.Scan() && said.Issuer == "" {
		_ = json.Unmarshal(lines.Bytes(), &said)
		if said.Issuer != "" {
			break
		}
	}
	if said.Issuer == "" {
		t.Fatal("the provider does not start")
	}
	go func() {
		for lines.Scan() { // what else it says is of no use, and must not fill the pipe
		}
	}()
	w.issuer = said.Issuer
	return w
}

// page is what the browser shows in the end.
type page struct {
	URL, Text  string
	Complaints []string
}

// browse lets the person do what the page asks for: "agree" or "refuse", with a device code if there is one.
func (w *world) browse(ctx context.Context, address, does, userCode string) (page, error) {
	arguments := []string{"testdata/browser.mjs", w.chromium, address, does}
	if userCode != "" {
		arguments = append(arguments, userCode)
	}
	command := exec.CommandContext(ctx, w.node, arguments...)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		return page{}, fmt.Errorf("browse %s: %w\n%s", address, err, complaints.String())
	}
	var shown page
	return shown, json.Unmarshal(output, &shown)
}

// terminal is a person in front of the client.
type terminal struct {
	t     *testing.T
	world *world
	does  string
	// noBrowser: the browser is on another device.
	noBrowser bool

	running sync.WaitGroup
	mu      sync.Mutex
	notices []string
	opened  int
	shown   page
}

var deviceNotice = regexp.MustCompile(`open (https://\S+) on any device and enter the code (\S+),`)

func (s *terminal) Notice(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.mu.Lock()
	s.notices = append(s.notices, text)
	s.mu.Unlock()
	if match := deviceNotice.FindStringSubmatch(text); match != nil {
		s.browse(match[1], match[2])
	}
}

func (s *terminal) OpenURL(address string) error {
	if s.noBrowser {
		return errors.New("no browser on this device")
	}
	s.mu.Lock()
	s.opened++
	s.mu.Unlock()
	s.browse(address, "")
	return nil
}

func (s *terminal) browse(address, userCode string) {
	s.running.Go(func() {
		shown, err := s.world.browse(s.t.Context(), address, s.does, userCode)
		if err != nil {
			s.t.Error(err)
		}
		s.mu.Lock()
		s.shown = shown
		s.mu.Unlock()
	})
}

// page waits until the browser is closed, and returns what it showed.
func (s *terminal) page() page {
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown
}

// certificate makes a certificate for loopback that vouches for itself.
func certificate(t *testing.T, certificateFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "login tests"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certificateFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
