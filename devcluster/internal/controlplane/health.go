package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/credence-id/credence/devcluster/internal/pki"
)

const (
	healthTimeout = 5 * time.Minute // a cold start on a slow, busy machine
	healthPoll    = 50 * time.Millisecond
)

// prober checks the parts of one cluster. It does so as the admin: which others
// may do so is the user's choice.
type prober struct {
	client *http.Client
}

func newProber(files pki.Files) (prober, error) {
	authority, err := os.ReadFile(files.Authority.Cert)
	if err != nil {
		return prober{}, fmt.Errorf("read certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return prober{}, fmt.Errorf("read certificate authority %s: no certificate in it", files.Authority.Cert)
	}
	admin, err := tls.LoadX509KeyPair(files.AdminClient.Cert, files.AdminClient.Key)
	if err != nil {
		return prober{}, fmt.Errorf("read admin's certificate: %w", err)
	}
	return prober{client: &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{admin}},
			DisableKeepAlives: true,
		},
		Timeout: 5 * time.Second,
	}}, nil
}

// await returns nil when url answers 200, or the cause of ctx's end.
func (p prober) await(ctx context.Context, url string) error {
	late := time.After(healthTimeout)
	for {
		err := p.ask(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late:
			return fmt.Errorf("not healthy after %s: %w", healthTimeout, err)
		case <-time.After(healthPoll):
		}
	}
}

func (p prober) ask(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}
