package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// callerVariable is where a program that stands between a client and this one says whom it stands for: itself, a space, and the
// client. It is believed of the parent of this process alone, whose number and start it must have: one that was inherited from
// further up, or that a kubeconfig sets, is of another process.
const callerVariable = "CREDENCE_CREDENTIAL_CALLER"

// Parent is the process that started this one.
func Parent() Caller { return process(os.Getppid()) }

// Client is the process that asks: the parent of this one or, where that only stands between, the one that it stands for.
// environment looks up a variable.
func Client(environment func(string) string) Caller {
	parent := Parent()
	author, represented, _ := strings.Cut(environment(callerVariable), " ")
	if client, ok := parseCaller(represented); ok && author == parent.text() {
		return client
	}
	return parent
}

// CallerEnvironment is the line, NAME=VALUE, for the environment of a child that works in the place of this process: its Client is that of
// this process. Empty where the system does not tell when processes were started.
func CallerEnvironment(environment func(string) string) string {
	self, client := process(os.Getpid()), Client(environment)
	if self.Started == "" || client.Started == "" {
		return ""
	}
	return callerVariable + "=" + self.text() + " " + client.text()
}

// text is a caller in one word.
func (c Caller) text() string { return fmt.Sprintf("%d/%s/%s", c.PID, c.Started, c.Program) }

func parseCaller(text string) (Caller, bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return Caller{}, false
	}
	pid, err := strconv.Atoi(parts[0])
	return Caller{PID: pid, Started: parts[1], Program: parts[2]}, err == nil && pid > 0
}

// same says whether both are one process, whatever it runs now.
func (c Caller) same(other Caller) bool { return c.PID == other.PID && c.Started == other.Started }

func process(pid int) Caller { return Caller{PID: pid, Started: started(pid), Program: program(pid)} }

// word is a name of any form in a few letters.
func word(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

func (c Caller) known() bool { return c.PID > 0 }

// client is who asks. Without the protocol it is nobody: a person, or a script, may ask as often as they like, and from the
// same shell, without meaning anything by it.
func (p *Provider) client(info ExecInfo) Caller {
	if !info.FromClient {
		return Caller{}
	}
	return p.Caller
}

// mark is the line that says that a client was served the credential of an entry. A client that talks to several clusters
// infos for each of them, and means nothing by it.
func mark(caller Caller, info ExecInfo, e *Entry) string {
	cluster := info.cluster()
	if cluster == "" {
		cluster = "-"
	}
	return fmt.Sprintf("%d %s %s", e.Obtained.UnixNano(), caller.text(), cluster)
}

// cluster is a short name of the cluster that a client talks to; empty if it does not say.
func (a ExecInfo) cluster() string {
	if a.Cluster == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(a.Cluster.Server + "\n" + a.Cluster.TLSServerName + "\n" + string(a.Cluster.Config)))
	return hex.EncodeToString(sum[:8])
}
