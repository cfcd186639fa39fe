package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// noopCommand is the first argument with which this program is the webhook that does nothing instead.
const noopCommand = "serve-noop"

// serveNoop serves a webhook that decodes reviews of pods, and admits them as they are. A GET of / is answered with how many it
// has seen, a GET of another path with the first that was sent there. It ends when its input does; its first line of output is
// its address.
func serveNoop(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("%s needs a certificate and its key", noopCommand)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, listener.Addr()); err != nil {
		return err
	}
	server := &http.Server{Handler: admitAll()}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		_ = server.Close()
	}()
	if err := server.ServeTLS(listener, args[0], args[1]); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func admitAll() http.Handler {
	var seen atomic.Int64
	var first sync.Map // review by path
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/" {
			_, _ = fmt.Fprintln(w, seen.Load())
			return
		}
		if r.Method == http.MethodGet {
			review, found := first.Load(r.URL.Path)
			if !found {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(review.([]byte))
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var review admissionv1.AdmissionReview
		var pod corev1.Pod
		if json.Unmarshal(body, &review) != nil || review.Request == nil || json.Unmarshal(review.Request.Object.Raw, &pod) != nil {
			http.Error(w, "no review of a pod", http.StatusBadRequest)
			return
		}
		out, err := json.Marshal(admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
			Response: &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true},
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		seen.Add(1)
		if _, kept := first.Load(r.URL.Path); !kept {
			first.Store(r.URL.Path, body)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(out)
	})
}
