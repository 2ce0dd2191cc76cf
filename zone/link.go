package zone

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/questions"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/envoyadmin"
)

// linkParts are the dependencies of the zone's side of KDS, beside what a start opens.
type linkParts struct {
	registry prometheus.Registerer
	detail   prometheus.Registerer
	proxies  func(reported func(revision uint64) bool) ([]tracker.ProxyBehind, uint32)
	known    *kds.VersionFiles
	admins   *envoyadmin.Admins
	observed *accesslog.Config
}

// newLink returns the zone's side of KDS, or nil for a zone that runs alone.
func newLink(ctx context.Context, cfg *Config, o *opened, parts linkParts) (*kds.Zone, error) {
	if cfg.Global == "" {
		return nil, nil
	}
	urls, err := cfg.globals()
	if err != nil {
		return nil, err
	}
	secure, err := globalCredentials(cfg, urls, o.memberships)
	if err != nil {
		return nil, err
	}
	others := cfg.otherGlobals
	for _, u := range urls[1:] {
		others = append(others, u.Host)
	}
	var beside func(context.Context, grpc.ClientConnInterface) error
	if o.memberships.Current() != nil {
		answerer := questions.NewAnswerer(cfg.Zone, answers{cfg.Zone, parts.admins, parts.observed, cfg.Log}.answer, cfg.Panics, cfg.Log)
		renewal := &enrolment.Renewal{Holder: o.memberships, Zone: cfg.Zone, Now: cfg.Now, Questions: answerer.Wait,
			Panics: cfg.Panics, Log: cfg.Log}
		beside = func(ctx context.Context, conn grpc.ClientConnInterface) error {
			return server.Together(ctx, func(ctx context.Context) error { return renewal.Run(ctx, conn) },
				func(ctx context.Context) error { return answerer.Run(ctx, conn) })
		}
	}
	own, err := lineage.Open(ctx, o.store, o.keeper, false)
	if err != nil {
		return nil, fmt.Errorf("identity of the store: %w", err)
	}
	link := kds.NewZone(kds.ZoneConfig{
		Own:    own,
		Others: others, Beside: beside, Answers: beside != nil,
		Zone: cfg.Zone, Target: urls[0].Host, Credentials: secure, Store: o.store, Status: o.status,
		SystemNamespace: cfg.SystemNamespace,
		Self:            kds.Peer{Instance: o.instance, Version: server.Version()},
		MaxMessageSize:  cfg.KDSMaxMessageSize, Log: cfg.Log,
		Validate: resources.PeerValidation(cfg.SystemNamespace), Proxies: parts.proxies, Versions: parts.known,
		Epochs: epochs{o.keeper}, Observer: kds.NewMetrics(parts.registry), Tracer: cfg.Tracer,
		Panics: cfg.Panics, Open: o.fields.Open, Now: cfg.Now,
	})
	statuses := func() []tracker.SyncStatus { return []tracker.SyncStatus{link.Status("")} }
	parts.registry.MustRegister(connectedGauge(link),
		cfg.Panics.Collector("metrics", tracker.StatusCollector{Statuses: statuses}))
	parts.detail.MustRegister(cfg.Panics.Collector("metrics", tracker.LagCollector{Statuses: statuses}))
	return link, nil
}

// runLink maintains the session with the global, if there is one, until ctx ends.
func runLink(ctx context.Context, link *kds.Zone, known *kds.VersionFiles) error {
	if link == nil {
		return nil
	}
	return server.Together(ctx, link.Run, known.Run)
}

// connectedGauge reports the connection as a metric. It is not a condition of readiness, because a zone serves its
// proxies without the global.
func connectedGauge(link *kds.Zone) prometheus.Collector {
	options := prometheus.GaugeOpts{Name: "causeway_global_connected",
		Help: "1 while both streams to the global are open."}
	return prometheus.NewGaugeFunc(options, func() float64 {
		if link.Connected() {
			return 1
		}
		return 0
	})
}

// globalCredentials returns credentials that verify each replica of the global by its own name, or nil for plaintext.
// cfg must be valid.
func globalCredentials(cfg *Config, urls []*url.URL, m *enrolment.Holder) (credentials.TransportCredentials, error) {
	if urls[0].Scheme == "grpc" {
		return nil, nil
	}
	if m != nil && m.Current() != nil {
		return credentials.NewTLS(m.TLSConfig()), nil
	}
	byHost := &hostCredentials{TransportCredentials: credentials.NewTLS(nil), byHost: map[string]*tls.Config{}}
	for _, u := range urls {
		config, err := verifyGlobal(cfg, u.Hostname())
		if err != nil {
			return nil, err
		}
		byHost.byHost[u.Host] = config
	}
	return byHost, nil
}

// hostCredentials holds a TLS configuration for each host:port. The check of a pin also verifies the host name, so
// every address needs its own.
type hostCredentials struct {
	credentials.TransportCredentials
	byHost map[string]*tls.Config
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *hostCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn,
	credentials.AuthInfo, error) {
	config := c.byHost[authority]
	if config == nil {
		return nil, nil, fmt.Errorf("%s is not an address of the global", authority)
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (c *hostCredentials) Clone() credentials.TransportCredentials {
	return &hostCredentials{TransportCredentials: c.TransportCredentials.Clone(), byHost: c.byHost}
}

func verifyGlobal(cfg *Config, host string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, Time: cfg.Now}
	switch {
	case cfg.GlobalInsecure:
		config.InsecureSkipVerify = true //nolint:gosec // the operator asked for it by an explicit flag
	case cfg.GlobalCASHA256 != "":
		pin, err := hex.DecodeString(cfg.GlobalCASHA256)
		if err != nil {
			return nil, err
		}
		config.InsecureSkipVerify = true //nolint:gosec // the pin is checked instead
		config.VerifyConnection = func(state tls.ConnectionState) error {
			return enrolment.VerifyPinned(state, pin, host, cfg.Now())
		}
	default:
		pool, err := credential.Pool("--global-ca", cfg.GlobalCA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	return config, nil
}
