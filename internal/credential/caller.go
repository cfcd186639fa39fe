package credential

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// callerVariable is set by a program that runs between a client and this one. Its value is that program itself, a space, and the
// client. It is accepted only if it names the parent of this process, by number and start time: a value that was inherited from
// further up, or that a kubeconfig sets, is of another process.
const callerVariable = "CREDENCE_CREDENTIAL_CALLER"

// Parent is the process that started this one.
func Parent() Caller { return process(os.Getppid()) }

// Client is the client process: the parent of this one, or the client that the parent represents.
// environment looks up a variable.
func Client(environment func(string) string) Caller {
	parent := Parent()
	author, represented, _ := strings.Cut(environment(callerVariable), " ")
	if client, ok := parseCaller(represented); ok && author == parent.text() {
		return client
	}
	return parent
}

// CallerEnvironment is the line, NAME=VALUE, for the environment of a child that works in the place of this process: its Client is
// that of this process. It is empty where the system has no start times of processes.
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

// same reports whether both are one process, whatever program it runs now.
func (c Caller) same(other Caller) bool { return c.PID == other.PID && c.Started == other.Started }

func process(pid int) Caller { return Caller{PID: pid, Started: started(pid), Program: program(pid)} }

// word is a name of any form in a few letters.
func word(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}

func (c Caller) known() bool { return c.PID > 0 }

// client is the calling process. Without the protocol it is unknown: a person or a script may run the program repeatedly from
// the same shell, and a repetition has no meaning.
func (p *Provider) client(info ExecInfo) Caller {
	if !info.FromClient {
		return Caller{}
	}
	return p.Caller
}

// mark is the line that records that a client was served the credential of an entry. A client of several clusters requests
// one for each of them, which is not a repetition.
func mark(caller Caller, info ExecInfo, e *Entry) string {
	cluster := cmp.Or(info.cluster(), "-")
	return fmt.Sprintf("%d %s %s", e.Obtained.UnixNano(), caller.text(), cluster)
}

// cluster is a short name of the client's cluster; empty if the client does not name it.
func (a ExecInfo) cluster() string {
	if a.Cluster == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(a.Cluster.Server + "\n" + a.Cluster.TLSServerName + "\n" + string(a.Cluster.Config)))
	return hex.EncodeToString(sum[:8])
}
