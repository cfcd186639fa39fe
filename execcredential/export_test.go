package execcredential

import "os"

// SetTerminal makes s believe that its standard input is a terminal, or not.
func SetTerminal(s *Source, terminal bool) {
	(*s.provider).(*program).isTerminal = func(*os.File) bool { return terminal }
}

// SetEnviron is the environment of this process, for s.
func SetEnviron(s *Source, environ []string) {
	(*s.provider).(*program).environ = func() []string { return environ }
}

// SetLimits are the limits of the operating system, for s.
func SetLimits(s *Source, each, total int) {
	(*s.provider).(*program).limits = limits{each: each, total: total}
}

// ExecInfo is what c's program is passed.
func ExecInfo(c Config, interactive bool) (string, error) { return c.execInfo(interactive) }

// CheckBatch is the check of batch files on Windows.
func CheckBatch(path string, args ...string) error { return checkBatch("login", path, args) }

// SignErrorOf is what a request that ended with err gets, if its key returned signing in a handshake that ended with handshake.
func SignErrorOf(signing, handshake, err error) error {
	h := &handshakes{}
	h.signed(signing)
	h.ended(handshake)
	return h.of(err)
}

// Terminals is how many terminals are in use, and by how many runs that have or want one.
func Terminals() (terminals, runs int) {
	prompts.mu.Lock()
	defer prompts.mu.Unlock()
	for _, q := range prompts.queues {
		runs += q.users
	}
	return len(prompts.queues), runs
}
