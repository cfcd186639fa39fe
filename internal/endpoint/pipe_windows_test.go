package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/credence-id/credence/internal/endpoint"
	"github.com/credence-id/credence/test/testkit"
)

func pipe(t *testing.T) endpoint.Endpoint {
	t.Helper()
	return endpoint.Pipe(fmt.Sprintf(`\\.\pipe\credence-%d-%p`, os.Getpid(), t))
}

func TestPipe(t *testing.T) { conforms(t, pipe) }

// While nothing accepts, a dial waits, until its context is done.
func TestDialOfAPipeWaits(t *testing.T) {
	e := pipe(t)
	listener := testkit.Need(e.Listen(t.Context()))(t)
	defer func() { _ = listener.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := e.Dial(ctx)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// restricted checks that processes of other users than the owner, administrators and the system can't connect.
func restricted(t *testing.T, e endpoint.Endpoint) {
	t.Helper()
	var path string
	switch e := e.(type) {
	case endpoint.Pipe:
		path = string(e)
	case endpoint.Socket:
		path = string(e)
	}
	name, err := windows.UTF16PtrFromString(path)
	testkit.Must(t, err)
	file, err := windows.CreateFile(name, windows.READ_CONTROL, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_OPEN_REPARSE_POINT|windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	testkit.Must(t, err)
	defer func() { _ = windows.CloseHandle(file) }()
	has, err := windows.GetSecurityInfo(file, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if want := "D:P(A;;FA;;;SY)(A;;FA;;;BA)(A;;FA;;;OW)"; err != nil || has.String() != want {
		t.Errorf("access rights %v, %v, want %s", has, err, want)
	}
}
