package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// bareCommand is the first argument with which this program is the bare server instead.
const bareCommand = "serve-bare"

// startBare runs the bare server in a process of its own, so that its CPU time and memory are its own.
func startBare(ctx context.Context, certificateFile, keyFile string, body []byte) (peer, error) {
	return startPeer(ctx, bareCommand, certificateFile, keyFile, base64.StdEncoding.EncodeToString(body))
}

// serveBare serves until its input ends; its first line of output is its address. TLS is set as the discovery server sets it.
func serveBare(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 3 {
		return fmt.Errorf("%s needs a certificate, its key and a body", bareCommand)
	}
	pair, err := tls.LoadX509KeyPair(args[0], args[1])
	if err != nil {
		return err
	}
	body, err := base64.StdEncoding.DecodeString(args[2])
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, listener.Addr()); err != nil {
		return err
	}
	server := &http.Server{
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/jwk-set+json")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body)
		}),
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		_ = server.Close()
	}()
	if err := server.ServeTLS(listener, "", ""); err != http.ErrServerClosed {
		return err
	}
	return nil
}
