package zone

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// linkParts are what the zone's side of KDS is wired to.
type linkParts struct {
	durable  store.Store
	status   store.Reader
	instance string
	registry prometheus.Registerer
	behind   func() []kds.ProxyBehind
	known    *kds.KnownFiles
	// keeper has the secrets of the durable store.
	keeper *secrets.Keeper
	// memberships has the zone's credential, if it has joined.
	memberships *memberships
}

// newLink is the zone's side of KDS, nil for a zone that runs alone.
func newLink(cfg *Config, parts linkParts) (*kds.Zone, error) {
	if cfg.Global == "" {
		return nil, nil
	}
	config, target, err := globalTLS(cfg, parts.memberships)
	if err != nil {
		return nil, err
	}
	var secure credentials.TransportCredentials
	if config != nil {
		secure = credentials.NewTLS(config)
	}
	var beside func(context.Context, grpc.ClientConnInterface) error
	if parts.memberships.current.Load() != nil {
		beside = (&renewal{memberships: parts.memberships, zone: cfg.Zone, now: time.Now, log: cfg.Log}).run
	}
	link := kds.NewZone(kds.ZoneConfig{
		Others: cfg.otherGlobals, Beside: beside,
		Zone: cfg.Zone, Target: target, Credentials: secure, Store: parts.durable, Status: parts.status, SystemNamespace: cfg.SystemNamespace,
		Self: kds.Peer{Instance: parts.instance, Version: server.Version()}, MaxMessageSize: cfg.KDSMaxMessageSize, Log: cfg.Log,
		Validate: resources.ValidateSpec, Behind: parts.behind, Known: parts.known, Incarnations: incarnations{parts.keeper}, Observer: kds.NewMetrics(parts.registry), Tracer: cfg.Tracer,
	})
	parts.registry.MustRegister(connectedGauge(link), kds.StatusCollector{Statuses: func() []kds.SyncStatus { return []kds.SyncStatus{link.Status("")} }})
	return link, nil
}

// connectedGauge is a metric, not a condition of readiness: a zone serves its proxies without the global.
func connectedGauge(link *kds.Zone) prometheus.Collector {
	options := prometheus.GaugeOpts{Name: "causeway_global_connected", Help: "1 while both streams to the global are open."}
	return prometheus.NewGaugeFunc(options, func() float64 {
		if link.Connected() {
			return 1
		}
		return 0
	})
}

// globalTLS returns the global's host:port and how to verify it, nil for plaintext. cfg was validated.
func globalTLS(cfg *Config, m *memberships) (config *tls.Config, target string, err error) {
	u, err := url.Parse(cfg.Global)
	if err != nil {
		return nil, "", err
	}
	if u.Scheme == "grpc" {
		return nil, u.Host, nil
	}
	if m != nil && m.current.Load() != nil {
		return m.tlsConfig(), u.Host, nil
	}
	config, err = verifyGlobal(cfg, u)
	return config, u.Host, err
}

func verifyGlobal(cfg *Config, u *url.URL) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
	switch {
	case cfg.GlobalInsecure:
		config.InsecureSkipVerify = true //nolint:gosec // what the operator asked for, by a flag that says so
	case cfg.GlobalCASHA256 != "":
		pin, err := hex.DecodeString(cfg.GlobalCASHA256)
		if err != nil {
			return nil, err
		}
		config.InsecureSkipVerify = true //nolint:gosec // the pin is checked instead
		config.VerifyConnection = func(state tls.ConnectionState) error { return verifyPinned(state, pin, u.Hostname()) }
	default:
		pem, err := os.ReadFile(cfg.GlobalCA)
		if err != nil {
			return nil, fmt.Errorf("global CA: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("global CA: %s holds no PEM certificate", cfg.GlobalCA)
		}
	}
	return config, nil
}

// verifyPinned accepts a chain that holds the pinned certificate: as the CA that signed the leaf for this host, or as the
// leaf itself.
func verifyPinned(state tls.ConnectionState, pin []byte, host string) error {
	chain := state.PeerCertificates
	for i, cert := range chain {
		if sum := sha256.Sum256(cert.Raw); string(sum[:]) != string(pin) {
			continue
		}
		if i == 0 {
			if now := time.Now(); now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
				return errors.New("the global's pinned certificate is not valid at this time")
			}
			return nil
		}
		options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), DNSName: host}
		options.Roots.AddCert(cert)
		for _, other := range chain[1:] {
			options.Intermediates.AddCert(other)
		}
		_, err := chain[0].Verify(options)
		return err
	}
	return errors.New("the global presents no certificate with the pinned SHA-256: compare with what the global printed at its start")
}
