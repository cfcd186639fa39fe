package etcd

import (
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

func config(dataDir string, socks sockets, log *zap.Logger) *embed.Config {
	cfg := embed.NewConfig()
	cfg.Name = "credence"
	cfg.Dir = dataDir

	cfg.ListenClientUrls = []url.URL{socks.url(clientSocket)}
	cfg.ListenClientHttpUrls = []url.URL{socks.url(httpSocket)}
	// There are no peers. (A peer URL unix:///path would become an abstract
	// socket, which any user of the machine could open.)
	cfg.ListenPeerUrls = nil
	// etcd wants a host and a port in what it advertises; no client dials it.
	advertised := url.URL{Scheme: "unix", Host: "localhost:0"}
	cfg.AdvertiseClientUrls = []url.URL{advertised}
	cfg.AdvertisePeerUrls = []url.URL{advertised}
	cfg.InitialCluster = cfg.Name + "=" + advertised.String()

	// With one member there is no other to wait for: short ticks make it leader, and ready, sooner.
	cfg.TickMs, cfg.ElectionMs = 20, 200
	// The directory of the socket is the authentication.
	cfg.AuthToken = ""
	cfg.EnableGRPCGateway = false
	// On a busy laptop a tenth of a second is nothing to report.
	cfg.WarningUnaryRequestDuration = time.Second
	cfg.WarningApplyDuration = time.Second
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return cfg
}
