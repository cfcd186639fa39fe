package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/credence-id/credence/test/testkit"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// makeAuthority returns the PEM of an authority, or of no authority, that is valid for a time from noon on.
func makeAuthority(t testing.TB, isCA bool, valid time.Duration) (certificate, key []byte) {
	t.Helper()
	made := testkit.NewCertificate(t, x509.Certificate{Subject: pkix.Name{CommonName: "test"}, NotBefore: noon.Add(-day), NotAfter: noon.Add(valid),
		IsCA: isCA, KeyUsage: x509.KeyUsageCertSign}, nil)
	return made.PEM(), made.KeyPEM()
}

func newAuthority(t testing.TB, valid time.Duration) *Authority {
	t.Helper()
	certificate, key := makeAuthority(t, true, valid)
	authority := testkit.Need(Load(certificate, key, noon))(t)
	return authority
}

func server() Request {
	return Request{CommonName: "server", Hosts: []string{"a.b.svc", "localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
}

func client() Request {
	return Request{CommonName: "system:serviceaccount:a:b", Organizations: []string{"system:serviceaccounts", "system:serviceaccounts:a"}}
}

func issue(t testing.TB, a *Authority, request Request) Pair {
	t.Helper()
	pair := testkit.Need(a.Issue(request, noon, rand.Reader))(t)
	return pair
}

func TestIssuedCertificatesAreForOneUseOnly(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, 3650*day)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.PEM())
	verify := func(pair Pair, host string, usage x509.ExtKeyUsage, at time.Time) error {
		parsed, err := tls.X509KeyPair(pair.Certificate, pair.Key)
		testkit.Must(t, err)
		_, err = parsed.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	serving, identity := issue(t, a, server()), issue(t, a, client())
	for _, host := range []string{"a.b.svc", "localhost", "127.0.0.1"} {
		if err := verify(serving, host, x509.ExtKeyUsageServerAuth, noon.Add(364*day)); err != nil {
			t.Errorf("serving %s: %v", host, err)
		}
	}
	testkit.Expect(t, verify(identity, "", x509.ExtKeyUsageClientAuth, noon), "client")
	for name, err := range map[string]error{
		"a server as a client":   verify(serving, "", x509.ExtKeyUsageClientAuth, noon),
		"a client as a server":   verify(identity, "", x509.ExtKeyUsageServerAuth, noon),
		"another host":           verify(serving, "example.com", x509.ExtKeyUsageServerAuth, noon),
		"after more than a year": verify(serving, "localhost", x509.ExtKeyUsageServerAuth, noon.Add(366*day)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestCheckTellsWhenACertificateMustBeMadeAgain(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t, 3650*day), newAuthority(t, 3650*day)
	short := newAuthority(t, 20*day)
	otherHost, otherIP, otherName, otherGroup := server(), server(), client(), client()
	otherHost.Hosts = []string{"localhost"}
	otherIP.IPs = nil
	otherName.CommonName = "system:serviceaccount:a:c"
	otherGroup.Organizations = otherGroup.Organizations[:1]
	sameNamesAgain := server()
	sameNamesAgain.Hosts = []string{"localhost", "a.b.svc"}
	good, goodClient := issue(t, a, server()), issue(t, a, client())
	for name, c := range map[string]struct {
		authority *Authority
		pair      Pair
		request   Request
		at        time.Time
		want      string // empty: it fits
	}{
		"fits":                        {a, good, server(), noon, ""},
		"order of names":              {a, good, sameNamesAgain, noon, ""},
		"fits a client":               {a, goodClient, client(), noon, ""},
		"more than 30 days left":      {a, good, server(), noon.Add(334 * day), ""},
		"less than 30 days left":      {a, good, server(), noon.Add(336 * day), "it ends at"},
		"ends with its authority":     {short, issue(t, short, server()), server(), noon, ""},
		"ended with its authority":    {short, issue(t, short, server()), server(), noon.Add(21 * day), "it ended at"},
		"not yet valid":               {a, good, server(), noon.Add(-day), "valid from"},
		"another authority":           {other, good, server(), noon, "another authority"},
		"another host":                {a, good, otherHost, noon, "it is for"},
		"another address":             {a, good, otherIP, noon, "it is for"},
		"another name":                {a, goodClient, otherName, noon, "it is for"},
		"another group":               {a, goodClient, otherGroup, noon, "it is for"},
		"another use":                 {a, good, Request{CommonName: "server"}, noon, "another use"},
		"the key of another":          {a, Pair{good.Certificate, goodClient.Key}, server(), noon, "read the certificate"},
		"nothing":                     {a, Pair{}, server(), noon, "read the certificate"},
		"half a file, as after crash": {a, Pair{good.Certificate[:100], good.Key}, server(), noon, "read the certificate"},
	} {
		err := c.authority.Check(c.pair, c.request, c.at)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	certificate, key := makeAuthority(t, true, day)
	leaf, leafKey := makeAuthority(t, false, day)
	_, otherKey := makeAuthority(t, true, day)
	for name, c := range map[string]struct {
		certificate, key []byte
		at               time.Time
		want             string
	}{
		"good":         {certificate, key, noon, ""},
		"no authority": {leaf, leafKey, noon, "not one of an authority"},
		"expired":      {certificate, key, noon.Add(2 * day), "expired at 2026-01-03T12:00:00Z"},
		"foreign key":  {certificate, otherKey, noon, "does not match"},
		"no key":       {certificate, nil, noon, "read the certificate authority"},
	} {
		_, err := Load(c.certificate, c.key, c.at)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	certificate, key := makeAuthority(f, true, day)
	f.Add(certificate, key)
	f.Add(certificate[:50], key)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"), []byte{})
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		authority, err := Load(certificate, key, noon)
		if (authority == nil) == (err == nil) {
			t.Fatalf("authority %v with error %v", authority, err)
		}
		if err != nil && len(key) > 40 && bytes.Contains([]byte(err.Error()), key) {
			t.Error("the error shows the key")
		}
	})
}

func TestPEMIsACopy(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, day)
	first := a.PEM()
	clear(first)
	if diff := cmp.Diff(false, bytes.Equal(first, a.PEM())); diff != "" {
		t.Errorf("what a caller does to the PEM changes the authority (-want +got):\n%s", diff)
	}
}
