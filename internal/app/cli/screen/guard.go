package screen

import (
	"io"
	"sync"

	"github.com/credence-id/credence/internal/wording"
)

// guard is a writer that redacts tokens and makes control characters visible, whatever an error, a flag or a server has
// put into a message. Writes may come from several goroutines, and each must hold its tokens whole.
type guard struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (g *guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := io.WriteString(g.to, wording.Printable(wording.Redact(string(p)))); err != nil {
		return 0, err
	}
	return len(p), nil
}
