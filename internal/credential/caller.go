package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

func (c Caller) known() bool { return c.PID > 0 }

// client is who asks. Without the protocol it is nobody: a person, or a script, may ask as often as they like, and from the
// same shell, without meaning anything by it.
func (p *Provider) client(ask Ask) Caller {
	if !ask.FromClient {
		return Caller{}
	}
	return p.Caller
}

// mark is the line that says that a client was served the credential of an entry. A client that talks to several clusters
// asks for each of them, and means nothing by it.
func mark(caller Caller, ask Ask, e *Entry) string {
	cluster := "-"
	if ask.Cluster != nil {
		sum := sha256.Sum256([]byte(ask.Cluster.Server + "\n" + ask.Cluster.TLSServerName + "\n" + string(ask.Cluster.Config)))
		cluster = hex.EncodeToString(sum[:8])
	}
	return fmt.Sprintf("%d %d/%s %s", e.Obtained.UnixNano(), caller.PID, caller.Started, cluster)
}
