package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/credence-id/credence/devcluster/internal/containerd"
	"github.com/credence-id/credence/devcluster/internal/kubelet"
	"github.com/credence-id/credence/devcluster/internal/pki"
)

func parts(t *testing.T) *running {
	t.Helper()
	return &running{file: filepath.Join(t.TempDir(), processesName), log: slog.New(slog.DiscardHandler)}
}

func (r *running) shown(t *testing.T) []Process {
	t.Helper()
	var shown State
	content, err := os.ReadFile(r.file)
	if err == nil {
		err = json.Unmarshal(content, &shown)
	}
	if err != nil {
		t.Fatal(err)
	}
	return shown.Processes
}

// A part that ends before the node is ready is a failure of the start, with the last line that it printed.
func TestStartFailsWithAPart(t *testing.T) {
	r := parts(t)
	failed, fail := context.WithCancelCause(t.Context())
	stop := r.keep(t.Context(), fail, "kubelet", func(_ context.Context, output io.Writer, started func(int)) error {
		started(7)
		_, _ = io.WriteString(output, "I0102 15:04:05.000000    1234 server.go:56] all is well\ncredence-devcluster: no cgroups\n")
		return errors.New("process 7: exit status 1")
	})
	defer stop()
	<-failed.Done()
	if err := context.Cause(failed); err.Error() != "kubelet ended: process 7: exit status 1: no cgroups" {
		t.Errorf("%v", err)
	}
}

// Later it is started again, after pauses that grow while it ends soon. Others can see what runs.
func TestPartsAreStartedAgain(t *testing.T) {
	r := parts(t)
	synctest.Test(t, func(t *testing.T) {
		r.settle()
		began := time.Now()
		var starts []time.Duration
		lives := map[int]time.Duration{3: longRun, 4: time.Hour} // the others end at once
		stop := r.keep(t.Context(), func(err error) { t.Error(err) }, "kube-proxy", func(ctx context.Context, _ io.Writer, started func(int)) error {
			starts = append(starts, time.Since(began))
			started(100 + len(starts))
			select {
			case <-time.After(lives[len(starts)]):
				return errors.New("process: exit status 1")
			case <-ctx.Done():
				return nil
			}
		})
		time.Sleep(firstPause/2 + 3*firstPause + longRun)
		synctest.Wait()
		if want := []time.Duration{0, firstPause, 3 * firstPause}; !slices.Equal(starts, want) {
			t.Errorf("started at %v, want %v", starts, want)
		}
		if got := r.shown(t); len(got) != 0 {
			t.Errorf("%v is shown in a pause", got)
		}
		time.Sleep(firstPause)
		synctest.Wait()
		if want := 4*firstPause + longRun; len(starts) != 4 || starts[3] != want {
			t.Errorf("started at %v, want the fourth at %s", starts, want)
		}
		if got := r.shown(t); !slices.Equal(got, []Process{{"kube-proxy", 104}}) {
			t.Errorf("%v is shown", got)
		}
		stop()
		if got := r.shown(t); len(got) != 0 || len(starts) != 4 {
			t.Errorf("%v is shown after the end, %d starts", got, len(starts))
		}
	})
}

// script writes a program that prints its arguments, and ends.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// newNode has the files that programs are given.
func newNode(t *testing.T, settings Settings) *node {
	t.Helper()
	folder := t.TempDir()
	authority := filepath.Join(folder, "ca.crt")
	if err := os.WriteFile(authority, []byte("authority"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings.Folder, settings.URL, settings.PKI = folder, "https://127.0.0.1:6443", pki.Files{Authority: pki.Pair{Cert: authority}}
	n := &node{Settings: settings, runtime: containerd.Settings{Folder: folder}, kubelet: kubelet.Settings{Folder: folder, Kubeconfig: "/kubelet.kubeconfig"}}
	n.file, n.log = filepath.Join(folder, processesName), slog.New(slog.DiscardHandler)
	return n
}

// The driver gets the kubeconfig of no user.
func TestArgumentsOfTheDriver(t *testing.T) {
	n := newNode(t, Settings{CSIDriver: script(t, `echo "$@"; exit 3`), ImageRegistries: "/registries.yaml"})
	failed, fail := context.WithCancelCause(t.Context())
	stop, err := n.keepDriver(t.Context(), fail)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	<-failed.Done()
	config := filepath.Join(n.Folder, "csi.kubeconfig")
	want := fmt.Sprintf("exit status 3: csi --node-name 127.0.0.1 --kubelet-dir %s --kubeconfig %s --registries /registries.yaml", n.kubelet.Root(), config)
	if err := context.Cause(failed); !strings.HasPrefix(err.Error(), "program ended: process ") || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if content, err := os.ReadFile(config); err != nil || !strings.Contains(string(content), n.URL) || strings.Contains(string(content), "client-") {
		t.Errorf("%s, %v", content, err)
	}
	if stop, err := newNode(t, Settings{}).keepDriver(t.Context(), fail); err != nil {
		t.Errorf("without a driver: %v", err)
	} else {
		stop()
	}
}

// The kubelet reaches containerd through the guard, where there is one.
func TestArgumentsOfTheGuard(t *testing.T) {
	n := newNode(t, Settings{Guard: script(t, `echo "$@"; exit 3`), GuardTemplate: "restricted", GuardAllow: "/allow.yaml"})
	starting, fail := context.WithCancelCause(t.Context())
	if _, err := n.keepGuard(t.Context(), starting, fail); err == nil || !strings.Contains(err.Error(), "containerd does not answer: guard ended: process ") {
		t.Errorf("%v", err)
	}
	want := fmt.Sprintf("guard --listen %s --runtime %s --node-name 127.0.0.1 --kubelet-dir %s --template restricted --kubeconfig /kubelet.kubeconfig --allow /allow.yaml",
		filepath.Join(n.Folder, "guard.sock"), n.runtime.Socket(), n.kubelet.Root())
	if err := context.Cause(starting); !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	bare := newNode(t, Settings{})
	stop, err := bare.keepGuard(t.Context(), starting, fail)
	if err != nil || bare.runtimeSocket() != bare.runtime.Socket() {
		t.Errorf("without a guard: %s, %v", bare.runtimeSocket(), err)
	}
	stop()
}

func TestConfigurationOfImageCredentials(t *testing.T) {
	n := newNode(t, Settings{ImageCredentials: script(t, `echo "$@"`), ImageRegistries: "/registries.yaml", Audience: "https://cluster"})
	if err := n.prepareImageCredentials(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "kubelet-config --registries /registries.yaml --kubeconfig " + filepath.Join(n.Folder, "image-credentials.kubeconfig") + " --audience https://cluster\n"
	if config, err := os.ReadFile(n.kubelet.ImageCredentialsConfig); err != nil || string(config) != want || n.kubelet.ImageCredentials != filepath.Dir(n.ImageCredentials) {
		t.Errorf("%q, %v, want %q; programs are in %s", config, err, want, n.kubelet.ImageCredentials)
	}
	n = newNode(t, Settings{ImageCredentials: script(t, "echo no such registry >&2; exit 1")})
	if err := n.prepareImageCredentials(t.Context()); err == nil || err.Error() != "no such registry" {
		t.Errorf("%v", err)
	}
	n = newNode(t, Settings{})
	if err := n.prepareImageCredentials(t.Context()); err != nil || n.kubelet.ImageCredentialsConfig != "" {
		t.Errorf("without a program: %v", err)
	}
}
