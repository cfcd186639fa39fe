package etcd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
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
		// It waits for minutes: the shorter this is, the shorter the test.
		time.AfterFunc(time.Second, cancel)
	}()
	_, err := startBy(ctx, filepath.Join(dir, "etcd"), filepath.Join(dir, "run"), slow)
	fmt.Println(err)
}

// A log that was cut, as by a full disk or a copy that ended early, is an error that names the folder, never a panic or a start without end. One
// whose lost entries etcd waits for is logged before.
func TestStartWithACutLog(t *testing.T) {
	for size, waits := range map[int64]bool{0: false, 4: false, 100: true} {
		dir := t.TempDir()
		server := start(t.Context(), t, dir)
		for range 20 { // until as many entries have come again, it is not ready
			if _, err := client(t, server).Put(t.Context(), "k", "v"); err != nil {
				t.Fatal(err)
			}
		}
		server.Close()
		wal := filepath.Join(dir, "etcd", "member", "wal")
		logs, err := filepath.Glob(filepath.Join(wal, "*.wal"))
		if err != nil || len(logs) == 0 {
			t.Fatalf("no log in %s: %v", wal, err)
		}
		if err := os.Truncate(logs[0], size); err != nil {
			t.Fatal(err)
		}
		// A process of its own: a member that is not ready goes on.
		again := exec.CommandContext(t.Context(), os.Args[0])
		again.Env = append(os.Environ(), startIn+"="+dir)
		var logged strings.Builder
		again.Stderr = &logged
		if output, err := again.Output(); err != nil || !strings.Contains(string(output), filepath.Join(dir, "etcd")) {
			t.Errorf("cut to %d bytes: %s, %v, want an error that names the folder\n%s", size, output, err, logged.String())
		}
		if waits && (!strings.Contains(logged.String(), "has not started yet") || !strings.Contains(logged.String(), wal)) {
			t.Errorf("cut to %d bytes, logged: %s", size, logged.String())
		}
	}
}

func TestStateOutlivesAStop(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	server := start(ctx, t, dir)
	if _, err := client(t, server).Put(ctx, "k", "v"); err != nil {
		t.Fatal(err)
	}
	server.Close()

	server = start(ctx, t, dir)
	defer server.Close()
	got, err := client(t, server).Get(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "v" {
		t.Errorf("k is %v, want v", got.Kvs)
	}
}

func TestListensOnSocketsInItsDirectoryOnly(t *testing.T) {
	dir := t.TempDir()
	server := start(t.Context(), t, dir)
	defer server.Close()
	var addresses []string
	for _, listener := range server.etcd.Clients {
		addresses = append(addresses, listener.Addr().String())
	}
	for _, peer := range server.etcd.Peers {
		addresses = append(addresses, peer.Addr().String())
	}
	slices.Sort(addresses)
	want := []string{filepath.Join(dir, "run", "client.sock"), filepath.Join(dir, "run", "http.sock")}
	if diff := cmp.Diff(want, addresses); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
}

func TestSocketDirectory(t *testing.T) {
	base := t.TempDir()
	short := filepath.Join(base, "run")
	if err := os.Mkdir(short, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		dir       string
		temporary bool
	}{
		"one that fits is used and closed to others": {dir: short},
		"one that is too long is not used":           {dir: filepath.Join(base, strings.Repeat("x", maxSocketPath)), temporary: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := openSockets(test.dir)
			if err != nil {
				t.Fatal(err)
			}
			if got.temporary != test.temporary || (got.dir == test.dir) == test.temporary {
				t.Errorf("directory %s, temporary %t", got.dir, got.temporary)
			}
			if info, err := os.Stat(got.dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("mode %v, error %v; want 0700", info.Mode(), err)
			}
			got.remove()
			if _, err := os.Stat(got.dir); os.IsNotExist(err) != test.temporary {
				t.Errorf("removed at the end: %t, want %t", os.IsNotExist(err), test.temporary)
			}
		})
	}
}

func TestAFatalEntryIsReturned(t *testing.T) {
	end := make(ending, 1)
	log := logger(zap.NewAtomicLevelAt(zap.WarnLevel), end)
	finished := make(chan bool, 2)
	for _, write := range []func(string, ...zap.Field){log.Fatal, log.Panic} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			write("failed to save entries", zap.Int("size", 1), zap.Error(syscall.ENOSPC))
			finished <- true
		}()
		<-done
		err := <-end
		if !errors.Is(err, syscall.ENOSPC) || err.Error() != "failed to save entries: no space left on device" {
			t.Errorf("error %q, want the entry with its cause", err)
		}
		explained := (&Server{dataDir: "/data"}).explain(err).Error()
		if want := err.Error() + " (its data is in /data): make room on that disk, or choose another one with --dir"; explained != want {
			t.Errorf("error %q, want %q", explained, want)
		}
	}
	if len(finished) != 0 {
		t.Error("the code after a fatal entry was run")
	}
}

func TestStartReturnsWhatEndsIt(t *testing.T) {
	dir := t.TempDir()
	server := start(t.Context(), t, dir)
	server.end <- errors.New("disk on fire")
	defer server.Close()
	if err := server.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("error %v, want the one that etcd ended with", err)
	}
}

func start(ctx context.Context, t *testing.T, dir string) *Server {
	t.Helper()
	server, err := Start(ctx, filepath.Join(dir, "etcd"), filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func client(t *testing.T, server *Server) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
