package oidc

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
)

// discard drops net/http's messages about clients: nothing here logs.
var discard = log.New(io.Discard, "", 0)

// redirect is where a browser may be sent back to.
type redirect struct {
	host, path string
	ports      []int
}

// loopbackListener receives the browser's redirect: listeners on loopback that share a port.
type loopbackListener struct {
	listeners []net.Listener
	// address is host and port as the browser names them, redirectURI the whole.
	address, redirectURI string
}

// listen opens the first of the ports that is free. For the name localhost it listens on both IPv4 and IPv6, because a browser may
// take either, and another program on the one that is left out would get the code.
func listen(ctx context.Context, to redirect) (*loopbackListener, error) {
	var failed []string
	for _, port := range to.ports {
		d, err := listenOn(ctx, to, port)
		if err == nil {
			return d, nil
		}
		failed = append(failed, err.Error())
	}
	return nil, fmt.Errorf("listen for the browser: %s", strings.Join(failed, "; "))
}

func listenOn(ctx context.Context, to redirect, port int) (*loopbackListener, error) {
	host := to.host
	if host == "localhost" {
		host = "127.0.0.1"
	}
	var config net.ListenConfig
	first, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	chosen := strconv.Itoa(first.Addr().(*net.TCPAddr).Port)
	d := &loopbackListener{listeners: []net.Listener{first}, address: net.JoinHostPort(to.host, chosen)}
	d.redirectURI = "http://" + d.address + to.path
	if to.host == "localhost" {
		second, err := config.Listen(ctx, "tcp", net.JoinHostPort("::1", chosen))
		switch {
		case err == nil:
			d.listeners = append(d.listeners, second)
		case hasIPv6(ctx):
			_ = first.Close()
			return nil, err
		}
	}
	return d, nil
}

// hasIPv6 reports whether this machine has IPv6 on loopback. Error numbers of a port in use differ between systems.
func hasIPv6(ctx context.Context) bool {
	var config net.ListenConfig
	free, err := config.Listen(ctx, "tcp", "[::1]:0")
	if err != nil {
		return false
	}
	_ = free.Close()
	return true
}
