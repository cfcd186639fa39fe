package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
)

// Paths of the webhook, which clusters with another gMSA webhook know too.
const mutatePath, validatePath = "/mutate", "/validate"

// reviewedAccounts and reviewedSpecs are those that reviews are about, each account with each spec.
const reviewedAccounts, reviewedSpecs = 4, 5

// pairs is how many rights are reviewed.
const pairs = reviewedAccounts * reviewedSpecs

// gmsaReviews are reviews as kube-apiserver sends them, by path.
type gmsaReviews map[string][][]byte

// reviews takes one of each kind from the webhook that does nothing: before anything is filled in, and after; and puts the other
// accounts and specs in its place.
func (w *gmsaWorld) reviews(ctx context.Context) (gmsaReviews, error) {
	all := gmsaReviews{}
	for path, seen := range map[string]string{mutatePath: mutatePath, validatePath: bothPath} {
		review, err := get(ctx, w.metrics, w.noopURL+seen)
		if err != nil {
			return nil, err
		}
		for account := range reviewedAccounts {
			for spec := range reviewedSpecs {
				one := bytes.ReplaceAll(review, []byte(gmsaAccount(0)), []byte(gmsaAccount(account)))
				all[path] = append(all[path], bytes.ReplaceAll(one, []byte(w.spec(0)), []byte(w.spec(spec))))
			}
		}
	}
	return all, nil
}

// ask sends reviews to a server, one after the other. Every answer must admit the pod, and have a patch or none.
func (w *gmsaWorld) ask(server, path string, reviews [][]byte, patch bool) func(context.Context) error {
	var next atomic.Int64
	url := server + path + "?timeout=10s"
	return func(ctx context.Context) error {
		review := reviews[int(next.Add(1)-1)%len(reviews)]
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(review))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", "application/json, */*")
		answer, err := send(w.reviewer, request, http.StatusOK)
		if err == nil && (!bytes.Contains(answer, []byte(`"allowed":true`)) || bytes.Contains(answer, []byte(`"patch":`)) != patch) {
			err = fmt.Errorf("%s answered wrongly: %.300s", url, answer)
		}
		return err
	}
}
