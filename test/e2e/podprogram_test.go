package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podProgram is the variable by which a process of this test binary is the program of a pod. It serves, or with the arguments
// "get URL" prints what is there.
const podProgram = "CREDENCE_E2E_POD"

// podGroup is an API group that the program serves.
const podGroup = "pod.e2e.example.com"

// interceptPod is all of main in a pod.
func interceptPod() {
	name := os.Getenv(podProgram)
	if name == "" {
		return
	}
	var err error
	if len(os.Args) == 3 && os.Args[1] == "get" {
		err = podGet(os.Args[2])
	} else {
		err = podServe(name)
	}
	fmt.Fprintln(os.Stderr, err)
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// podGet trusts the cluster's authority.
func podGet(url string) error {
	roots := x509.NewCertPool()
	if authority, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"); err == nil {
		roots.AppendCertsFromPEM(authority)
	}
	client := http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return errOf(io.Copy(os.Stdout, answer.Body))
}

// podServe greets on port 8080, and with a certificate on 8443, where it is also a webhook that refuses all and an API server.
func podServe(name string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "hello from %s", name) })
	mux.HandleFunc("POST /review", func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "refused by a webhook in a pod"}}
		_ = json.NewEncoder(w).Encode(review)
	})
	mux.HandleFunc("/apis/"+podGroup+"/v1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: podGroup + "/v1"})
	})
	if os.Getenv("CERTIFICATE") != "" {
		pair, err := tls.X509KeyPair([]byte(os.Getenv("CERTIFICATE")), []byte(os.Getenv("KEY")))
		if err != nil {
			return err
		}
		secure := http.Server{Addr: ":8443", Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
		go func() { fmt.Fprintln(os.Stderr, secure.ListenAndServeTLS("", "")) }()
	}
	return http.ListenAndServe(":8080", mux)
}
