package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// client calls the servers of a plane, all in the same way: over one HTTP/2 connection each, as client-go does, with the client
// certificate of the plane's administrator.
type client struct {
	http *http.Client
	// cluster is the URL of kube-apiserver, aggregated that of our own server behind it.
	cluster, aggregated string
}

func newClient(p plane) (*client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(p.APIServer)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		return nil, fmt.Errorf("port of %s: %w", p.APIServer, err)
	}
	return &client{
		http:    &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true}, Timeout: 30 * time.Second},
		cluster: p.APIServer,
		// The second of a plane's ports: docs/decisions/0012-ports.md.
		aggregated: "https://" + net.JoinHostPort(address.Hostname(), strconv.Itoa(port+1)),
	}, nil
}

// fresh is the same client with a TLS connection for each request.
func (c *client) fresh() *client {
	transport := c.http.Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	return &client{http: &http.Client{Transport: transport, Timeout: c.http.Timeout}, cluster: c.cluster, aggregated: c.aggregated}
}

// post creates an object and returns the answer.
func (c *client) post(ctx context.Context, url string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	return send(c.http, request, http.StatusCreated)
}

func send(client *http.Client, request *http.Request, want int) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != want {
		return nil, fmt.Errorf("%s %s: %s: %.300s", request.Method, request.URL, response.Status, body)
	}
	return body, nil
}

// create makes an object at kube-apiserver.
func (c *client) create(ctx context.Context, path string, object any) (name string, err error) {
	body, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	answer, err := c.post(ctx, c.cluster+path, body)
	if err != nil {
		return "", err
	}
	var created struct {
		Metadata struct{ Name string } `json:"metadata"`
	}
	return created.Metadata.Name, json.Unmarshal(answer, &created)
}

// patch changes an object at kube-apiserver by a merge patch.
func (c *client) patch(ctx context.Context, path, patch string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, c.cluster+path, strings.NewReader(patch))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	_, err = send(c.http, request, http.StatusOK)
	return err
}

// remove deletes an object at kube-apiserver.
func (c *client) remove(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, c.cluster+path, nil)
	if err != nil {
		return err
	}
	_, err = send(c.http, request, http.StatusOK)
	return err
}
