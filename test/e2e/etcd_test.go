package e2e_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/credence-id/credence/test/testkit"
)

// Of three members of an etcd cluster, by TLS with client certificates, the one that leads is lost: no token request fails, and identities can
// be created again.
func TestLostEtcdMember(t *testing.T) {
	inTurn(t)
	folder := t.TempDir()
	authority := testkit.NewCertificate(t, x509.Certificate{IsCA: true}, nil)
	authority.Write(t, folder, "ca")
	testkit.NewCertificate(t, x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority).Write(t, folder, "etcd")
	file := func(name string) string { return filepath.Join(folder, name) }
	members, urls := etcdMembers(t, transport.TLSInfo{CertFile: file("etcd.crt"), KeyFile: file("etcd.key"), TrustedCAFile: file("ca.crt"), ClientCertAuth: true})
	replica := shared.replica(t, map[string]string{
		"issuer": "https://another.example", "keys-dir": file("keys"), "etcd-servers": urls, "etcd-cafile": file("ca.crt"), "etcd-certfile": file("etcd.crt"), "etcd-keyfile": file("etcd.key"),
	})
	namespace := shared.namespace(t)
	create := func(name string) error {
		if got := do(t, replica, "POST", identitiesPath(namespace), "application/json", identityJSON(name, "generic", "a")); got.Code != 201 && got.Code != 409 {
			return fmt.Errorf("create %s: %d %s", name, got.Code, got.Body)
		}
		return nil
	}
	request := func() error {
		return do(t, replica, "POST", tokenPath(namespace, "one"), "application/json", tokenRequest(`{}`)).is(201)
	}
	eventually(t, func() error { return create("one") })
	eventually(t, request)

	ctx, stop := context.WithCancel(t.Context())
	answered := make(chan struct{}, 1)
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			expect(t, request())
			select {
			case answered <- struct{}{}:
			default:
			}
		}
	})
	<-answered
	eventually(t, func() error { // an election may be on
		for _, member := range members {
			if member.Server.Leader() == member.Server.MemberID() {
				member.lose()
				return nil
			}
		}
		return errors.New("no member leads")
	})
	eventually(t, func() error { return create("two") })
	for range 3 {
		<-answered
	}
	stop()
	running.Wait()
	expect(t, do(t, replica, "GET", identitiesPath(namespace), "", "").is(200, `"two"`), "identities")
}

type etcdMember struct {
	*embed.Etcd
	lose func()
}

// etcdMembers runs three, and returns what --etcd-servers names.
func etcdMembers(t *testing.T, tls transport.TLSInfo) ([]etcdMember, string) {
	t.Helper()
	port := need(testkit.FreePorts(6))(t)
	address := func(n int) url.URL { return url.URL{Scheme: "https", Host: fmt.Sprintf("127.0.0.1:%d", port+n)} }
	var configs []*embed.Config
	var cluster, clients []string
	for n := range 3 {
		config := embed.NewConfig()
		config.Name, config.Dir = fmt.Sprintf("member-%d", n), t.TempDir()
		client, peer := address(2*n), address(2*n+1)
		config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
		config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
		config.ClientTLSInfo, config.PeerTLSInfo = tls, tls
		config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		configs, clients, cluster = append(configs, config), append(clients, client.String()), append(cluster, config.Name+"="+peer.String())
	}
	members := make([]etcdMember, 0, len(configs))
	for _, config := range configs {
		config.InitialCluster = strings.Join(cluster, ",")
		member := need(embed.StartEtcd(config))(t)
		lose := sync.OnceFunc(func() {
			member.Server.HardStop() // without a word to the others
			member.Close()
		})
		t.Cleanup(lose)
		members = append(members, etcdMember{member, lose})
	}
	for _, member := range members {
		select {
		case <-member.Server.ReadyNotify():
		case <-time.After(5 * time.Minute):
			t.Fatal("etcd is not ready")
		}
	}
	return members, strings.Join(clients, ",")
}
