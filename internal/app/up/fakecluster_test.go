//go:build unix

package up

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-jose/go-jose/v4"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/internal/app/up/home"
)

// fakeCluster is the part of a Kubernetes API that up uses; tokens are signed with the key that fakeAPIServer made.
func fakeCluster(ctx context.Context, dir, port string) error {
	folder := filepath.Join(dir, "pki")
	if _, err := os.Stat(filepath.Join(folder, "ca.crt")); err != nil {
		if err := fakeAuthority(folder, time.Now()); err != nil {
			return err
		}
	}
	first, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	certificate, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return err
	}
	err = writeKubeconfig(filepath.Join(dir, "admin.kubeconfig"), "admin",
		&clientcmdapi.Cluster{Server: "https://127.0.0.1:" + port, CertificateAuthorityData: certificate}, &clientcmdapi.AuthInfo{})
	if err != nil {
		return err
	}
	config, err := home.NewConfig(first)
	if err != nil {
		return err
	}
	mux := readyMux()
	mux.HandleFunc("PATCH /", echo(http.StatusOK))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { // such as objects of options that were not chosen
		answer(w, http.StatusNotFound, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`)
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, `{"major":"1","minor":"37"}`) })
	mux.HandleFunc("GET /apis/apiregistration.k8s.io/v1/apiservices/{name}", func(w http.ResponseWriter, _ *http.Request) {
		status := "False"
		if listens(strconv.Itoa(first + 1)) {
			status = "True"
		}
		answer(w, http.StatusOK, `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"x"},"status":{"conditions":[{"type":"Available","status":%q}]}}`, status)
	})
	mux.HandleFunc("GET /api/v1/nodes/127.0.0.1", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"127.0.0.1"},"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":%q}]}}`,
			time.Now().UTC().Format(time.RFC3339))
	})
	mux.HandleFunc("GET /apis", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, `{"items":[{"metadata":{"name":"authentication.gardener.cloud"},"versions":[{"version":"v1alpha1","freshness":"Current","resources":[{"resource":"workloadidentities"}]}]},{"metadata":{"name":"identity.credence.dev"},"versions":[{"version":"v1alpha1","freshness":"Current","resources":[{"resource":"keyrings"}]}]}]}`)
	})
	mux.HandleFunc("GET /openapi/v3", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, `{"paths":{"apis/authentication.gardener.cloud/v1alpha1":{},"apis/identity.credence.dev/v1alpha1":{}}}`)
	})
	mux.HandleFunc("GET /apis/identity.credence.dev/v1alpha1/keyrings/workload-identities", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, `{"apiVersion":"identity.credence.dev/v1alpha1","kind":"KeyRing","metadata":{"name":"workload-identities"},"status":{"signing":"ES256=fake"}}`)
	})
	const identities = "/apis/authentication.gardener.cloud/v1alpha1/namespaces/credence-system/workloadidentities"
	mux.HandleFunc("POST "+identities, echo(http.StatusCreated))
	mux.HandleFunc("DELETE "+identities+"/{name}", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, `{"apiVersion":"v1","kind":"Status","status":"Success"}`)
	})
	mux.HandleFunc("POST "+identities+"/{name}/token", func(w http.ResponseWriter, _ *http.Request) {
		token, err := signToken(filepath.Join(filepath.Dir(dir), "keys"), string(config.Issuer), time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, http.StatusCreated, `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"TokenRequest","metadata":{"name":"up-check"},"status":{"token":%q}}`, token)
	})
	return serve(ctx, port, filepath.Join(folder, "serving.crt"), filepath.Join(folder, "serving.key"), mux)
}

func echo(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.Copy(w, r.Body)
	}
}

func answer(w http.ResponseWriter, code int, format string, values ...any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, format, values...)
}

func makeSigningKey(folder string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := home.WriteFile(filepath.Join(folder, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return err
	}
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "fake", Algorithm: "ES256", Use: "sig"}}}
	return home.WriteJSON(filepath.Join(folder, "jwks.json"), set, 0o600)
}

func signToken(folder, issuer string, now time.Time) (string, error) {
	data, err := os.ReadFile(filepath.Join(folder, "key.pem"))
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode(data)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "fake"}}, nil)
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": issuer, "sub": "fake", "aud": []string{"credence-up"}, "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(claims)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
