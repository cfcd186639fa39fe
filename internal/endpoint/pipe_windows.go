package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// pipeBuffer is in bytes, for each direction. Without one a write would wait for its reader.
const pipeBuffer = 64 << 10

// Listen implements Endpoint. Windows lets one process alone make a pipe, and removes the pipe with the process.
func (p Pipe) Listen(context.Context) (net.Listener, error) {
	listener, err := winio.ListenPipe(string(p), &winio.PipeConfig{SecurityDescriptor: ownerAlone, InputBufferSize: pipeBuffer, OutputBufferSize: pipeBuffer})
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_ALREADY_EXISTS) || errors.Is(err, windows.ERROR_PIPE_BUSY) {
		// A process that may not make a pipe of this name has the same error as one that comes second.
		err = fmt.Errorf("%w: %w", err, ErrListening)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", p, err)
	}
	return listener, nil
}

// Dial implements Endpoint. The other side learns nothing that it could act as this process with.
func (p Pipe) Dial(ctx context.Context) (net.Conn, error) {
	return winio.DialPipeContext(ctx, string(p))
}
