package global

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/kubernetes/leader"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/place"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/server"
)

// certificateFolder holds the CA that zones trust, and the server's certificate.
const certificateFolder = "kds-tls"

// Config configures the global server. Addresses are "host:port"; port 0 picks a free one.
type Config struct {
	// DataDir holds the store, keys and certificates; required. It is created with mode 0700.
	DataDir string
	// Store configures where resources are stored; by default in a bolt file in DataDir. Servers with the same prefix
	// in one etcd are replicas. Run sets Path, Owner, Registerer and Log.
	Store backend.Config
	// EtcdHistory is how long etcd keeps old revisions. One of the replicas compacts older ones. Zero leaves compaction
	// to etcd.
	EtcdHistory time.Duration
	// SecretsKeyFile or SecretsPassphrase seals keys at rest; see secrets.Config. If both are empty,
	// <DataDir>/secrets.key does.
	SecretsKeyFile, SecretsPassphrase string
	// APIAddress serves the HTTP API, KDSAddress serves zones, and DiagnosticsAddress serves /livez, /readyz and
	// /metrics. Off loopback, the API and diagnostics use TLS with a certificate of the CA that zones trust.
	APIAddress, KDSAddress, DiagnosticsAddress string
	// ReadyFile is written once the server is ready, as JSON with every bound address; empty for none.
	ReadyFile string
	// KDSTLS serves zones over TLS with a certificate created at the first start. Without it, KDSAddress must be
	// loopback.
	KDSTLS bool
	// TLSMinVersion is the minimum TLS version on every port: server.TLS12 or server.TLS13 (the default).
	TLSMinVersion string
	// TLSNames are the names and addresses in the serving certificate besides KDSAdvertise and those of this machine.
	TLSNames []string
	// KDSInsecureAnonymous admits zones without proof, as long as they have no credential; for experiments and load
	// generators.
	KDSInsecureAnonymous bool
	// KDSZoneTokens admits zones by bearer tokens, for peers that do not join.
	KDSZoneTokens bool
	// KDSAdvertise are the addresses in join strings, as host:port; those of this machine by default.
	KDSAdvertise []string
	// ZoneCredentialLifetime is the lifetime of a zone's certificate, which is renewed at half of it. 30 days by
	// default.
	ZoneCredentialLifetime time.Duration
	// Now is the wall clock for expiry, renewal and timestamps; time.Now by default.
	Now func() time.Time
	// SystemNamespace is resources.DefaultSystemNamespace by default.
	SystemNamespace string
	// KDSMaxMessageSize is the size in bytes at which messages to zones are split; kds.DefaultMaxMessageSize by
	// default.
	KDSMaxMessageSize int
	// KDSSendTimeout ends the session of a zone that does not read; kds.DefaultSendTimeout by default.
	KDSSendTimeout time.Duration
	// KDSFullSyncLimit is how many zones receive their full state at the same time; kds.DefaultFullSyncLimit by
	// default.
	KDSFullSyncLimit int
	// KDSZoneLimits bound what one zone may store here; a zero field means its default.
	KDSZoneLimits kds.Limits
	// Access decides who may use the HTTP API.
	Access access.Settings
	// Kubernetes connects the global to the API server of a cluster, in which its users write. Nil means no connection.
	Kubernetes *kubernetes.Settings
	// Tracer records spans; nil for none.
	Tracer trace.Tracer
	// Page is the web page on the HTTP API's address; nil means none.
	Page api.Page
	// Panics recovers panics caused by one peer or user. With nil, as in tests, they end the process.
	Panics *panics.Guard
	// Log is required.
	Log *slog.Logger

	// clusterID is read at the start.
	clusterID string
	// folder is DataDir, held open from the start.
	folder *place.Folder
	// term is this replica's lead; nil for a global without replicas of this kind.
	term *leader.Term
}

func (c *Config) fill() error {
	if c.DataDir == "" {
		return errors.New("no data directory: set --data-dir")
	}
	if c.Log == nil {
		return errors.New("no logger")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Store.Path, c.Store.Trace, c.Store.Log = c.storePath(), filepath.Join(c.DataDir, access.LogPath), c.Log
	c.Store.Owner, c.Store.Now = archive.Header{Server: "global", Version: server.Version()}, c.Now
	if err := c.Store.Validate(); err != nil {
		return err
	}
	if c.Kubernetes != nil && c.Store.Kind == backend.Etcd {
		return errors.New("--kubernetes: want --store bolt: replicas that share etcd would all write the status of the same objects")
	}
	if err := c.validateReplicas(); err != nil {
		return err
	}
	if _, err := server.ParseTLSVersion(c.TLSMinVersion); err != nil {
		return err
	}
	if c.SystemNamespace == "" {
		c.SystemNamespace = resources.DefaultSystemNamespace
	}
	if c.ZoneCredentialLifetime == 0 {
		c.ZoneCredentialLifetime = DefaultZoneCredentialLifetime
	}
	if c.KDSMaxMessageSize == 0 {
		c.KDSMaxMessageSize = kds.DefaultMaxMessageSize
	}
	if err := c.validateKDS(); err != nil {
		return err
	}
	if c.EtcdHistory < 0 || c.EtcdHistory > 0 && c.EtcdHistory < minEtcdHistory {
		return fmt.Errorf("--etcd-history is %s: want %s or more, or 0 to leave it to etcd", c.EtcdHistory, minEtcdHistory)
	}
	if c.ZoneCredentialLifetime < minZoneCredentialLifetime || c.ZoneCredentialLifetime > maxZoneCredentialLifetime {
		return fmt.Errorf("--zone-credential-lifetime is %s: want %s to %s", c.ZoneCredentialLifetime,
			minZoneCredentialLifetime, maxZoneCredentialLifetime)
	}
	if err := server.CheckHosts(c.TLSNames); err != nil {
		return fmt.Errorf("--tls-names: %w", err)
	}
	for _, address := range c.KDSAdvertise {
		if err := enrolment.CheckAddress(address); err != nil {
			return fmt.Errorf("--kds-advertise-address %q: want host:port", address)
		}
	}
	return nil
}

// validateKDS checks the limits of the streams to zones.
func (c *Config) validateKDS() error {
	switch {
	case c.KDSMaxMessageSize < 0 || c.KDSMaxMessageSize > kds.MaxMessageSize:
		return fmt.Errorf("--kds-max-message-size is %d: want at most %d, which is what every peer takes",
			c.KDSMaxMessageSize, kds.MaxMessageSize)
	case c.KDSSendTimeout < 0 || c.KDSFullSyncLimit < 0:
		return errors.New("--kds-send-timeout and --kds-full-sync-limit: want more than zero")
	case c.KDSZoneLimits.Resources < 0 || c.KDSZoneLimits.Bytes < 0:
		return errors.New("--kds-zone-resources and --kds-zone-bytes: want more than zero")
	}
	return nil
}

// DefaultZoneCredentialLifetime is how long a zone may stay offline before it must join again.
const DefaultZoneCredentialLifetime = 30 * 24 * time.Hour

const (
	minEtcdHistory            = time.Minute
	minZoneCredentialLifetime = 4 * time.Second
	maxZoneCredentialLifetime = 366 * 24 * time.Hour
)

func (c *Config) home() resources.Home {
	return resources.Home{SystemNamespace: c.SystemNamespace}
}

func (c *Config) storePath() string { return filepath.Join(c.DataDir, backend.File) }

// knownDir can be deleted: it only saves work after a restart.
func (c *Config) knownDir() string       { return filepath.Join(c.DataDir, "known") }
func (c *Config) clusterIDFile() string  { return filepath.Join(c.DataDir, server.ClusterIDFile) }
func (c *Config) certificateDir() string { return filepath.Join(c.DataDir, certificateFolder) }
