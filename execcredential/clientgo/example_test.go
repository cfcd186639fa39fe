package clientgo_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/execcredential/clientgo"
)

// A clientset for a kubeconfig whose user has a program.
func ExampleConfig() {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"gitVersion": "v1.37.2 for %s"}`, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	kubeconfig := kubeconfigFor(server.URL)
	defer os.RemoveAll(filepath.Dir(kubeconfig))

	var metrics clientgo.Metrics
	pool, err := execcredential.NewPool(execcredential.Options{OnRun: metrics.Run})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		fmt.Println(err)
		return
	}
	config, err = clientgo.Config(pool, config)
	if err != nil {
		fmt.Println(err)
		return
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	version, err := clientset.Discovery().ServerVersion()
	fmt.Println(version, err)
	// Output: v1.37.2 for Bearer a-token <nil>
}

func kubeconfigFor(server string) string {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	path := filepath.Join(dir, "config")
	_ = os.WriteFile(filepath.Join(dir, "login"), []byte("#!/bin/sh\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"a-token\"}}'\n"), 0o700)
	_ = os.WriteFile(path, []byte(fmt.Sprintf(`
current-context: dev
contexts: [{name: dev, context: {cluster: dev, user: jane}}]
clusters: [{name: dev, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: jane, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, interactiveMode: Never}}}]
`, server)), 0o600)
	return path
}
