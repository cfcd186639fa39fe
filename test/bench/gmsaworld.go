package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	webhookUser = "system:serviceaccount:credence-system:credence-webhook"
	// gmsaSpecs and gmsaAccounts are how many GMSACredentialSpecs and service accounts there are: each account may use each.
	gmsaSpecs, gmsaAccounts = 20, 6
	// burstAccount and manyAccount are those without earlier reviews: each is for one use.
	burstAccount, manyAccount = 4, 5
)

// The labels of pods select what decides about them: all of ours (webhooks and policy), our webhooks alone, the webhook that does
// nothing in their place, nothing at all, or ours and then the one that does nothing, which so sees what ours has filled in.
const (
	byOurs, byOurWebhooks, byNoop, byNone, byBoth = "ours", "webhooks", "noop", "none", "both"
	// bothPath is where the webhook that does nothing reviews pods of byBoth.
	bothPath = "/both"
)

// gmsaWorld is a namespace for gMSA pods, for which the plane's own webhook is not called, but two others: a copy of it, and one
// that does nothing. Both are processes of their own, with the same certificate.
type gmsaWorld struct {
	*world
	ours, noop       int // processes
	oursURL, noopURL string
	// reviewer calls them as kube-apiserver does: with its certificate, over TLS and HTTP/1.1, with a connection for each request in flight.
	reviewer *http.Client
	audit    *audit
	stops    []func()
}

func newGMSAWorld(ctx context.Context, p plane) (_ *gmsaWorld, err error) {
	plain, remove, err := newWorld(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	w := &gmsaWorld{world: plain, stops: []func(){remove}}
	defer func() {
		if err != nil {
			w.remove()
		}
	}()
	if w.reviewer, err = relyingParty(p.CAFile); err != nil {
		return nil, err
	}
	transport := w.reviewer.Transport.(*http.Transport)
	transport.MaxIdleConnsPerHost = slices.Max(gmsaConcurrencies)
	caller := filepath.Join(p.dir, "pki", "webhook", "caller")
	certificate, err := tls.LoadX509KeyPair(caller+".crt", caller+".key")
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig.Certificates = []tls.Certificate{certificate}
	if w.audit, err = followAudit(p, webhookUser); err != nil {
		return nil, err
	}
	w.stops = append(w.stops, func() { w.audit.close() })
	for _, step := range []func(context.Context) error{w.createSpecs, w.createAccounts, w.startServers, w.register, w.waitUntilAsked} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// remove undoes all that was done, the last first.
func (w *gmsaWorld) remove() {
	for _, stop := range slices.Backward(w.stops) {
		stop()
	}
}

func (w *gmsaWorld) startServers(ctx context.Context) error {
	port, err := freePorts(1)
	if err != nil {
		return err
	}
	copied, err := startCopy(ctx, w.plane, "webhook", map[string]string{"--port": port, "--health-port": "0"})
	if err != nil {
		return err
	}
	w.stops = append(w.stops, copied.stop)
	folder := filepath.Join(w.plane.dir, "pki", "webhook")
	nothing, err := startPeer(ctx, noopCommand, filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
	if err != nil {
		return err
	}
	w.stops = append(w.stops, nothing.stop)
	w.ours, w.oursURL = copied.pid, "https://"+net.JoinHostPort("127.0.0.1", port)
	w.noop, w.noopURL = nothing.pid, "https://"+nothing.ready
	return nil
}

func (w *gmsaWorld) register(ctx context.Context) error {
	installed, err := w.gmsaInstalled(ctx)
	if err != nil {
		return err
	}
	for _, do := range []func() (func(), error){
		func() (func(), error) { return w.exempt(ctx, installed) },
		func() (func(), error) {
			return w.registerGMSA(ctx, installed, "ours", gmsaURLs{w.oursURL + mutatePath, w.oursURL + validatePath, []string{byOurs, byOurWebhooks, byBoth}, []string{byOurs, byOurWebhooks}})
		},
		func() (func(), error) {
			return w.registerGMSA(ctx, installed, "noop", gmsaURLs{w.noopURL + mutatePath, w.noopURL + validatePath, []string{byNoop}, []string{byNoop}})
		},
		func() (func(), error) {
			return w.registerGMSA(ctx, installed, "both", gmsaURLs{validate: w.noopURL + bothPath, validated: []string{byBoth}})
		},
		func() (func(), error) { return w.bindGMSA(ctx, installed, byOurs) },
	} {
		undo, err := do()
		if err != nil {
			return err
		}
		w.stops = append(w.stops, undo)
	}
	return nil
}

// waitUntilAsked waits until each of them decides about its pods, and nothing else does. Contents without a name are left alone by the
// webhook that fills in, and refused by the policy.
func (w *gmsaWorld) waitUntilAsked(ctx context.Context) error {
	nameless := bytes.Replace(w.gmsaPod(byOurs, gmsaAccount(0)), []byte(windowsOptions(w.spec(0))), []byte(`{"windowsOptions":{"gmsaCredentialSpec":"{}"}}`), 1)
	return until(ctx, "the gMSA webhooks and the policy are called", 30*time.Second, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		if _, err := w.post(ctx, w.podsURL("?dryRun=All"), nameless); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return false, err
		}
		for _, by := range []string{byNone, byNoop, byOurWebhooks, byOurs, byBoth} {
			if err := w.gmsaDryRun(by)(ctx); err != nil {
				return false, err
			}
		}
		for _, path := range []string{mutatePath, validatePath, bothPath} {
			if _, err := get(ctx, w.metrics, w.noopURL+path); err != nil {
				return false, err
			}
		}
		return true, nil
	})
}
