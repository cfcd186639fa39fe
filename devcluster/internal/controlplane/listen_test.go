package controlplane

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestListenNamesABusyPort(t *testing.T) {
	first, err := listen(0, "--port")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	address := first.Addr().(*net.TCPAddr)
	if !address.IP.IsLoopback() {
		t.Errorf("listens on %s, want the loopback only", address.IP)
	}
	_, err = listen(address.Port, "--port")
	if want := fmt.Sprintf("port %d of 127.0.0.1 is in use", address.Port); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--port") {
		t.Errorf("error %v, want one with %q and the flag", err, want)
	}
	if _, err := listen(70000, "--port"); err == nil || !strings.Contains(err.Error(), "--port") {
		t.Errorf("port 70000: error %v, want one with the flag", err)
	}
}
