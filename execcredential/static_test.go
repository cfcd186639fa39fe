package execcredential_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/execcredential"
)

// files writes files into a new folder, and returns it.
func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range contents {
		path := filepath.Join(folder, name)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)))
	}
	return folder
}

// Of several files the first that has something counts, and relative paths begin at the folder of the file that has them.
func TestSeveralKubeconfigs(t *testing.T) {
	folder := files(t, map[string]string{
		"a/config": "contexts: [{name: c, context: {user: u, cluster: k}}]\nusers: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: ./first}}}]\n",
		"b/config": "current-context: c\ncontexts: [{name: c, context: {user: other, cluster: other}}]\nclusters: [{name: k, cluster: {server: 'https://k', certificate-authority: ca.pem}}]\n" +
			"users: [{name: u, user: {token: second}}]\n",
		"b/ca.pem": "CA",
		"c/config": "current-context: d\nusers: [{name: twice, user: {token: a}}, {name: twice, user: {token: b}}, {name: bad, user: {token: a, username: b}}]\n",
	})
	at := func(names ...string) string {
		for i, name := range names {
			names[i] = filepath.Join(folder, name, "config")
		}
		return strings.Join(names, string(os.PathListSeparator))
	}
	want := execcredential.Config{
		Command: "./first", APIVersion: execcredential.V1, InteractiveMode: execcredential.Never, Folder: filepath.Join(folder, "a"),
		Cluster: execcredential.Cluster{Server: "https://k", CertificateAuthorityData: []byte("CA")},
	}
	load := func(path string, s execcredential.Selection) {
		t.Helper()
		got, err := execcredential.LoadKubeconfig(path, s)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", path, err, diff)
		}
	}
	load(at("a", "missing", "b", "a", "c"), execcredential.Selection{})
	t.Setenv("KUBECONFIG", at("a", "b"))
	load("", execcredential.Selection{Context: "c"})
	if got, err := execcredential.LoadKubeconfig(at("b", "a"), execcredential.Selection{User: "u", Cluster: "k"}); err != nil || got.Static.Token != "second" {
		t.Errorf("in another order: %v, %v", got, err)
	}
	for path, want := range map[string]struct {
		selection execcredential.Selection
		path      string
		is        error
	}{
		at("a", "b", "c"):            {selection: execcredential.Selection{User: "twice", Cluster: "k"}, path: at("a", "b", "c")},
		at("b", "c"):                 {selection: execcredential.Selection{User: "bad", Cluster: "k"}, path: at("c")},
		at("missing", "missing too"): {path: at("missing"), is: fs.ErrNotExist},
		at("missing"):                {path: at("missing"), is: fs.ErrNotExist},
		string(os.PathListSeparator): {path: string(os.PathListSeparator), is: fs.ErrNotExist},
	} {
		_, err := execcredential.LoadKubeconfig(path, want.selection)
		var typed *execcredential.KubeconfigError
		ok := errors.As(err, &typed)
		if !ok || typed.Path != want.path || want.is != nil && !errors.Is(err, want.is) {
			t.Errorf("%s: %v", path, err)
		}
	}
	// Without the variable it is the file in the user's folder.
	home := files(t, map[string]string{".kube/config": "users: [{name: u, user: {token: of-home}}]\n", "x" + string(os.PathListSeparator) + "y": "users: [{name: u, user: {token: of-colon}}]\n"})
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	for path, want := range map[string]string{"": "of-home", filepath.Join(home, "x"+string(os.PathListSeparator)+"y"): "of-colon"} {
		if got, err := execcredential.LoadKubeconfig(path, execcredential.Selection{User: "u"}); err != nil || got.Static.Token != want {
			t.Errorf("%q: %v, %v", path, got, err)
		}
	}
}

// Users whose kubeconfig has their credentials are served as those of programs are.
func TestStaticUsers(t *testing.T) {
	server := serve(t, true, all)
	certificate, key := server.authority.Issue("jane", start.Add(-time.Hour), start.Add(time.Hour))
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	exec := ", exec: {apiVersion: client.authentication.k8s.io/v1, command: /none, interactiveMode: Never}"
	folder := files(t, map[string]string{"token": "of-file\n", "cert.pem": certificate, "key.pem": key})
	for user, want := range map[string]string{
		"{token: abc}":                                                    "Bearer abc anonymous ",
		"{token: abc" + exec + "}":                                        "Bearer abc anonymous ",
		"{tokenFile: token}":                                              "Bearer of-file anonymous ",
		"{token: abc, tokenFile: token}":                                  "Bearer of-file anonymous ",
		"{username: jane, password: p}":                                   "Basic " + encoded("jane:p") + " anonymous ",
		"{client-certificate: cert.pem, client-key: key.pem}":             " jane ",
		"{client-certificate: cert.pem, client-key: key.pem, token: abc}": "Bearer abc jane ",
		"{client-certificate-data: " + encoded(certificate) + ", client-key-data: " + encoded(key) + "}":                     " jane ",
		"{client-certificate: none, client-certificate-data: " + encoded(certificate) + ", client-key: key.pem" + exec + "}": " jane ",
	} {
		path := filepath.Join(folder, "config")
		content := fmt.Sprintf("current-context: c\ncontexts: [{name: c, context: {user: u, cluster: k}}]\nclusters: [{name: k, cluster: {server: %q}}]\nusers: [{name: u, user: %s}]\n", server.URL, user)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		config, err := execcredential.LoadKubeconfig(path, execcredential.Selection{})
		if err != nil {
			t.Errorf("%s: %v", user, err)
			continue
		}
		pool, _ := newPool(t, execcredential.Options{})
		client := &http.Client{Transport: sourceOf(t, pool, config).Transport(server.transport())}
		if got, status, err := get(client, server.URL); got != want || status != 200 {
			t.Errorf("%s: the server saw %q, status %d, error %v, want %q", user, got, status, err, want)
		}
	}
}

// A token in a file is read again each minute, and when a server refuses it.
func TestTokenFileIsReadAgain(t *testing.T) {
	folder := files(t, map[string]string{"token": "one"})
	path := filepath.Join(folder, "token")
	write := func(token string) { must(t, os.WriteFile(path, []byte(token), 0o600)) }
	accepts := "Bearer one"
	server := serve(t, true, func(r *http.Request) bool { return r.Header.Get("Authorization") == accepts })
	pool, clock := newPool(t, execcredential.Options{})
	source := sourceOf(t, pool, execcredential.Config{Static: execcredential.Static{TokenFile: path}})
	client := &http.Client{Transport: source.Transport(server.transport())}
	expect := func(want string) {
		t.Helper()
		if got, status, err := get(client, server.URL); status != 200 || !strings.HasPrefix(got, want) {
			t.Errorf("the server saw %q, status %d, error %v", got, status, err)
		}
	}
	expect("Bearer one")
	write("two")
	accepts = "Bearer two"
	expect("Bearer two") // refused, and read again
	write("three")
	clock.Advance(time.Minute - 1)
	expect("Bearer two")
	accepts = "Bearer three"
	clock.Advance(1)
	expect("Bearer three")
	if runs := source.Status().Runs; runs != 3 {
		t.Errorf("the file was read %d times", runs)
	}
}

func TestStaticConfigs(t *testing.T) {
	for name, c := range map[string]execcredential.Config{
		"and a program": {Static: execcredential.Static{Token: "a"}, Command: "login"},
		"relative file": {Static: execcredential.Static{TokenFile: "a"}},
		"no key":        {Static: execcredential.Static{CertificateFile: "/a"}},
		"two of a kind": {Static: execcredential.Static{Token: "a", Username: "b"}},
	} {
		if err := c.Validate(); !isConfigError(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	pool, _ := newPool(t, execcredential.Options{})
	one := sourceOf(t, pool, execcredential.Config{Static: execcredential.Static{Token: "a"}})
	if sourceOf(t, pool, execcredential.Config{Static: execcredential.Static{Token: "b"}}) == one || sourceOf(t, pool, execcredential.Config{Static: execcredential.Static{Token: "a"}}) != one {
		t.Error("sources of static credentials are distinguished by something else than these")
	}
}
