package network

import "testing"

func TestOnNode(t *testing.T) {
	for address, want := range map[string]bool{
		"10.96.0.1:443": true, "10.97.0.2:8443": true, Node + ":10250": true, "[2001:db8::1]:443": true,
		"127.0.0.1:17444": false, "[::1]:443": false, "[::ffff:127.0.0.1]:443": false, "localhost:17444": false, "example.com:443": false, "": false,
	} {
		if got := onNode(address); got != want {
			t.Errorf("onNode(%q) = %t, want %t", address, got, want)
		}
	}
}
