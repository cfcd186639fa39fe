package testkit

import (
	"fmt"
	"net"
	"os"
	"sync"
)

// ports are handed out once each: tests run side by side.
var ports = struct {
	sync.Mutex
	next int
}{next: 20000 + os.Getpid()%500*20}

// FreePorts returns the first of n consecutive ports that no program listens on.
func FreePorts(n int) (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for ; ports.next < 32000; ports.next += n {
		if base := ports.next; AllFree(base, n) {
			ports.next += n
			return base, nil
		}
	}
	return 0, fmt.Errorf("no %d consecutive free ports", n)
}

// AllFree reports whether no program listens on n consecutive ports.
func AllFree(base, n int) bool {
	for port := base; port < base+n; port++ {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		_ = listener.Close()
	}
	return true
}
