package storage_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/apiserver/storage"
	"github.com/credence-id/credence/test/testkit"
)

// startIn makes this program one that starts etcd in a folder, slowly by its clock, and prints the error.
const startIn = "CREDENCE_START_IN"

func TestMain(m *testing.M) {
	dir := os.Getenv(startIn)
	if dir == "" {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithCancel(context.Background())
	slow := make(chan time.Time)
	go func() {
		slow <- time.Time{}
		// It waits for longer: the shorter this is, the shorter the test.
		time.AfterFunc(time.Second, cancel)
	}()
	_, err := storage.StartBy(ctx, dir, slog.New(slog.NewTextHandler(os.Stderr, nil)), slow)
	fmt.Println(err)
}

func TestStart(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	for name, dir := range map[string]string{"short path": t.TempDir(), "long path": long} {
		t.Run(name, func(t *testing.T) {
			etcd, err := storage.Start(t.Context(), dir, slog.New(slog.DiscardHandler))
			testkit.Must(t, err)
			socket, ok := strings.CutPrefix(etcd.Endpoint(), "unix://")
			if !ok {
				t.Fatalf("endpoint %s is not a unix socket", etcd.Endpoint())
			}
			info, err := os.Stat(filepath.Dir(socket))
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("folder of the socket: %v, %v, want mode 0700", info.Mode(), err)
			}
			connection, err := net.Dial("unix", socket)
			testkit.Must(t, err, "no listener")
			_ = connection.Close()
			if _, err := storage.Start(t.Context(), dir, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "in use by another process") || !strings.Contains(err.Error(), dir) {
				t.Errorf("a second start on the same folder: %v", err)
			}
			if connection, err = net.Dial("unix", socket); err != nil {
				t.Errorf("the second start took the socket away: %v", err)
			} else {
				_ = connection.Close()
			}
			etcd.Stop()
			again, err := storage.Start(t.Context(), dir, slog.New(slog.DiscardHandler))
			testkit.Must(t, err, "after a stop")
			again.Stop()
		})
	}
}

func TestStartInAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	testkit.Must(t, os.WriteFile(file, nil, 0o600))
	if _, err := storage.Start(t.Context(), file, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("etcd in a file: %v", err)
	}
}

// A log that was cut, as by a full disk or a copy that ended early, is an error that names it, never a start without end. One whose
// lost entries etcd waits for is logged before.
func TestStartWithACutLog(t *testing.T) {
	for size, waits := range map[int64]bool{0: false, 4: false, 100: true} { // none is the end of a record, whatever the IDs of the member; at that the log is whole
		dir := t.TempDir()
		etcd, err := storage.Start(t.Context(), dir, slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
		etcd.Stop()
		logs, err := filepath.Glob(filepath.Join(dir, "data", "member", "wal", "*.wal"))
		if err != nil || len(logs) == 0 {
			t.Fatalf("no log in %s: %v", dir, err)
		}
		testkit.Must(t, os.Truncate(logs[0], size))
		// A process of its own: a server that has not started in time goes on, and ends its process once its folder is gone.
		start := exec.CommandContext(t.Context(), os.Args[0])
		start.Env = append(os.Environ(), startIn+"="+dir)
		var logged strings.Builder
		start.Stderr = &logged
		if output, err := start.Output(); err != nil || !strings.Contains(string(output), filepath.Dir(logs[0])) {
			t.Errorf("cut to %d bytes: %s, %v, want an error that names the log", size, output, err)
		}
		if waits && (!strings.Contains(logged.String(), "has not started yet") || !strings.Contains(logged.String(), filepath.Dir(logs[0]))) {
			t.Errorf("cut to %d bytes, logged: %s", size, logged.String())
		}
	}
}
