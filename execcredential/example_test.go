package execcredential_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/credence-id/credence/execcredential"
)

// folder has a kubeconfig and a program that it names, for the examples.
func folder(server string) string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	program := `#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"a-token"}}'
`
	kubeconfig := `
current-context: dev
contexts: [{name: dev, context: {cluster: dev, user: jane}}]
clusters: [{name: dev, cluster: {server: "` + server + `", insecure-skip-tls-verify: true}}]
users:
- name: jane
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./login
      interactiveMode: Never
`
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "login"), []byte(program), 0o700), os.WriteFile(filepath.Join(dir, "config"), []byte(kubeconfig), 0o600)); err != nil {
		panic(err)
	}
	return dir
}

// An HTTP client with the credentials of a kubeconfig.
func Example() {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "you sent", r.Header.Get("Authorization"))
	}))
	defer server.Close()
	dir := folder(server.URL)
	defer os.RemoveAll(dir)

	pool, err := execcredential.NewPool(execcredential.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	config, err := execcredential.LoadKubeconfig(filepath.Join(dir, "config"), execcredential.Selection{})
	if err != nil {
		fmt.Println(err)
		return
	}
	source, err := pool.Source(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	base, err := config.Cluster.Transport() // its certificate authorities, its proxy
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: source.Transport(base)}

	response, err := client.Get(config.Cluster.Server)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(os.Stdout, response.Body)
	// Output: you sent Bearer a-token
}

// The token for something that is not HTTP.
func ExampleSource_TokenSource() {
	dir := folder("https://dev.example")
	defer os.RemoveAll(dir)
	pool, _ := execcredential.NewPool(execcredential.Options{})
	defer pool.Close()
	config, _ := execcredential.LoadKubeconfig(filepath.Join(dir, "config"), execcredential.Selection{User: "jane"})
	source, _ := pool.Source(config)

	token, err := source.TokenSource(context.Background()).Token()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(token.Type(), token.AccessToken)
	// Output: Bearer a-token
}

// Errors are distinguished by their type and Problem.
func ExampleOutputError() {
	_, err := execcredential.Decode([]byte("Logging in...\n{\"apiVersion\":\"client.authentication.k8s.io/v1\"}"), execcredential.V1, time.Now())
	fmt.Println(errors.Is(err, execcredential.TextBeforeObject))
	fmt.Println(err)
	// Output:
	// true
	// exec credential: standard output has text before the JSON object: 14 bytes; messages belong on standard error
}

// Only one program may run, and only as long as no other user could have changed it.
func ExamplePolicy() {
	pool, err := execcredential.NewPool(execcredential.Options{Policy: execcredential.Policy{
		Type:         execcredential.Allowlist,
		Allowlist:    []execcredential.AllowedProgram{{Command: "/usr/local/bin/login"}},
		TrustedOwner: true,
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	source, _ := pool.Source(execcredential.Config{Command: "/bin/sh", APIVersion: execcredential.V1, InteractiveMode: execcredential.Never})

	_, err = source.Get(context.Background())
	var denied *execcredential.PolicyError
	fmt.Println(errors.As(err, &denied), denied.Reason)
	// Output: true it is not in the allowlist
}

// Two credentials of one account: if the first program has none to give, the second is run.
func ExampleNewAccount() {
	dir := folder("https://dev.example")
	defer os.RemoveAll(dir)
	pool, _ := execcredential.NewPool(execcredential.Options{})
	defer pool.Close()
	missing, _ := pool.Source(execcredential.Config{Command: "no-such-program", APIVersion: execcredential.V1, InteractiveMode: execcredential.Never})
	login, _ := pool.Source(execcredential.Config{Command: "./login", Folder: dir, APIVersion: execcredential.V1, InteractiveMode: execcredential.Never})

	credential, err := execcredential.NewAccount(missing, login).Get(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(credential.Token())
	// Output: a-token
}

// A key that never leaves its device: anything that is a crypto.Signer, here one in memory.
func ExamplePool_SourceOf() {
	device, certificate := deviceKey()
	pool, _ := execcredential.NewPool(execcredential.Options{})
	defer pool.Close()
	source := pool.SourceOf(execcredential.ProviderFunc(func(context.Context) (*execcredential.Credential, error) {
		return execcredential.NewCredential(execcredential.Material{
			Certificate: &tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: device},
			Expires:     time.Now().Add(time.Hour),
		}, time.Now())
	}))

	config := &tls.Config{GetClientCertificate: source.GetClientCertificate}
	fmt.Println(config.GetClientCertificate != nil)
	// Output: true
}

func deviceKey() (*ecdsa.PrivateKey, []byte) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour)}
	certificate, _ := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return key, certificate
}
