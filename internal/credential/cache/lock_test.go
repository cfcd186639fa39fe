//go:build unix

package cache_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/credence-id/credence/internal/credential/cache"
	"github.com/credence-id/credence/test/testkit"
)

const holderFolder = "CACHE_TEST_HOLDER_FOLDER"

// TestMain runs this program as a process that holds a lock until it is killed, for TestKilledHolder.
func TestMain(m *testing.M) {
	path := os.Getenv(holderFolder)
	if path == "" {
		os.Exit(m.Run())
	}
	folder, err := cache.Open(path)
	if err == nil {
		_, err = folder.Lock(context.Background(), name("a"), cache.Wait{})
	}
	fmt.Println("locked", err)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	os.Exit(1)
}

func TestKilledHolder(t *testing.T) {
	folder := open(t)
	holder := exec.CommandContext(t.Context(), os.Args[0])
	holder.Env = append(os.Environ(), holderFolder+"="+folder.Path())
	testkit.Must(t, testkit.Err(holder.StdinPipe()))
	output, err := holder.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, holder.Start())
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || line != "locked <nil>\n" {
		t.Fatalf("the holder printed %q, %v", line, err)
	}
	told := 0
	lock, err := folder.Lock(t.Context(), name("a"), cache.Wait{Notice: func(pid int) {
		told++
		if pid != holder.Process.Pid {
			t.Errorf("the reported holder is %d, want %d", pid, holder.Process.Pid)
		}
		testkit.Expect(t, holder.Process.Kill())
	}})
	testkit.Must(t, err)
	lock.Release()
	_ = holder.Wait() // it was killed
	if told != 1 {
		t.Errorf("%d notices of the holder", told)
	}
}

func TestBusyLockHasADeadline(t *testing.T) {
	folder := open(t)
	lock(t, folder, name("a"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := folder.Lock(ctx, name("a"), cache.Wait{Patience: time.Hour, Notice: func(int) { t.Error("impatient") }})
	if !errors.Is(err, cache.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("lock: %v, want ErrBusy with the holder's number", err)
	}
	lock(t, folder, name("b"))
}

// A lock is held by one at a time also while the content is removed again and again, the lock's file included.
func TestLockIsExclusiveWhileItsFileIsRemoved(t *testing.T) {
	folder := open(t)
	var inside sync.Mutex
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 8 {
				lock, err := folder.Lock(t.Context(), name("a"), cache.Wait{})
				if err != nil {
					t.Error(err)
					return
				}
				if !inside.TryLock() {
					t.Error("two have the lock")
					return
				}
				testkit.Expect(t, lock.Write([]byte("content")))
				inside.Unlock()
				if i%2 == 0 {
					testkit.Expect(t, lock.Remove())
				} else {
					lock.Release()
				}
			}
		})
	}
	all.Wait()
}

func TestWhatCannotBeALockIsRefused(t *testing.T) {
	folder := open(t)
	target := filepath.Join(t.TempDir(), "precious")
	testkit.Must(t, os.WriteFile(target, []byte("precious"), 0o600))
	testkit.Must(t, os.Symlink(target, filepath.Join(folder.Path(), string(name("a"))+".lock")))
	if _, err := folder.Lock(t.Context(), name("a"), cache.Wait{}); !errors.Is(err, cache.ErrForeign) {
		t.Errorf("lock: %v, want ErrForeign", err)
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "precious" {
		t.Errorf("the target of the link holds %q, %v", data, err)
	}
}
