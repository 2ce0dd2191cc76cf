package zone

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/kubernetes/leader"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/place"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Config configures Run. An empty address means the default one. Port 0 picks a free port.
type Config struct {
	// Zone is the zone's name, a DNS label. Required, unless the zone joins or has joined.
	Zone string
	// Join is a join string. The zone joins with it before it serves, unless it has joined already. Zone and Global
	// then come from the membership.
	Join string
	// Global is the global's URL: grpcs://host:port, or grpc://host:port on loopback. Commas separate several replicas,
	// which use the scheme of the first. If it is empty, the zone runs alone.
	Global string
	// GlobalCA is a PEM file with the CA that signed the global's certificate. GlobalCASHA256 is the SHA-256, in hex,
	// of a certificate in the chain that the global presents. GlobalInsecure trusts any server. With grpcs://, set
	// exactly one of the three.
	GlobalCA, GlobalCASHA256 string
	GlobalInsecure           bool
	// DataDir holds the store, the certificates and the identity keys. Required.
	DataDir string
	// Store configures where the zone keeps its resources: by default in a bolt file in DataDir. In etcd the default
	// prefix is /causeway/zones/<zone>. Run fills in Path, Registerer and Log.
	Store backend.Config
	// SecretsKeyFile or SecretsPassphrase seals the keys at rest; see secrets.Config. If both are empty,
	// <DataDir>/secrets.key does.
	SecretsKeyFile, SecretsPassphrase string
	// ExternalSecretsDir is the folder with the files that MeshExternalServices may name: those of a mesh in <mesh>/,
	// those of a namespace in <mesh>/<namespace>/. If it is empty, they cannot name files.
	ExternalSecretsDir string
	// APIAddress, XDSAddress and DiagnosticsAddress are host:port. Off loopback they serve TLS, with the CA in
	// <DataDir>/tls/ca.crt.
	APIAddress, XDSAddress, DiagnosticsAddress string
	// DNSAddress is host:port, where the zone answers UDP queries for service names, for a cluster's resolver. Empty
	// turns that off.
	DNSAddress string
	// TLSMinVersion is the minimum version of TLS on those ports: server.TLS12 or server.TLS13, the latter when empty.
	TLSMinVersion string
	// TLSNames are names and addresses that the serving certificate covers beside those of this machine.
	TLSNames []string
	// XDSRequireCredentials requires a dataplane token or an SVID of proxies on loopback too. Off loopback they always
	// need one.
	XDSRequireCredentials bool
	// IdentityOverlap limits how long a new authority of a mesh waits for offline zones before it signs. It always
	// waits for connected zones. 10 minutes when zero; a negative value means no wait.
	IdentityOverlap time.Duration
	// ReadyFile, if set, is written once the zone is ready.
	ReadyFile string
	// SystemNamespace is resources.DefaultSystemNamespace when empty.
	SystemNamespace string
	// NamespaceLimits bound what namespaces may hold; a zero field means its default.
	NamespaceLimits api.NamespaceLimits
	// KDSMaxMessageSize limits the size of messages to the global, in bytes. Larger ones are split. The protocol's
	// default when zero.
	KDSMaxMessageSize int
	// RBACForm selects how permissions are written for Envoy: list, compiled, or auto (the default), which compiles the
	// permissions of an inbound above a certain size.
	RBACForm string
	// AccessLog lists where proxies log the decisions of their inbounds, separated by commas: als (the zone collects
	// them, for reports and suggestions), stdout (each proxy's own) and absolute file paths. If it is empty, proxies do
	// not log them.
	AccessLog string
	// Kubernetes connects the zone with the API server of a cluster in which users write resources. Nil means no
	// cluster.
	Kubernetes *kubernetes.Settings
	// Injection configures the proxies of pods that ask for one.
	Injection Injection
	// Now is the wall clock, used for expiry, renewal and timestamps; time.Now when nil.
	Now func() time.Time

	// clusterID is read at the start.
	clusterID string
	// folder is DataDir. It is held open from the start.
	folder *place.Folder
	// term is this replica's lead; nil for a zone without replicas.
	term *leader.Term
	// Access configures who may use the HTTP API.
	Access access.Settings
	// Tracer receives the spans; nil turns tracing off.
	Tracer trace.Tracer
	// Page is the web page, on the HTTP API's address; nil means none.
	Page api.Page
	// Panics catches panics caused by one peer or user, which would end the process. Nil, as in tests, catches nothing.
	Panics *panics.Guard
	// Log is slog.Default when nil.
	Log *slog.Logger

	// otherGlobals are additional addresses, host:port, of the global that the zone has joined.
	otherGlobals []string
}

// joins reports whether the zone will join, or has joined in this data directory.
func (c *Config) joins() bool {
	return c.Join != "" || HasJoined(c.DataDir)
}

// HasJoined reports whether a data directory holds the credential of a zone that has joined a global.
func HasJoined(dataDir string) bool {
	if dataDir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dataDir, enrolment.HeldPath))
	return err == nil
}

// defaultIdentityOverlap is much longer than a connected zone needs.
const defaultIdentityOverlap = 10 * time.Minute

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Validate returns an error for every invalid field, which names the valid values.
func (c *Config) Validate() error {
	var errs []error
	joins := c.joins()
	if c.Zone == "" && !joins {
		errs = append(errs, errors.New("zone: the name is missing (--zone), and the data directory has no membership with one: join first, or again if a join was interrupted (causeway-zone join)"))
	} else if c.Zone != "" && !dnsLabel.MatchString(c.Zone) {
		errs = append(errs, fmt.Errorf("zone %q: want a DNS label: 1 to 63 lower-case letters, digits and dashes, a letter or digit at both ends", c.Zone))
	}
	if c.DataDir == "" {
		errs = append(errs, errors.New("data dir: name the folder for the zone's store and keys"))
	}
	if c.SystemNamespace != "" && !dnsLabel.MatchString(c.SystemNamespace) {
		errs = append(errs, fmt.Errorf("system namespace %q: want a DNS label", c.SystemNamespace))
	}
	if c.NamespaceLimits.ServicePorts < 0 || c.NamespaceLimits.Dataplanes < 0 {
		errs = append(errs, errors.New("--namespace-service-ports and --namespace-dataplanes: want more than zero"))
	}
	if c.KDSMaxMessageSize < 0 {
		errs = append(errs, fmt.Errorf("kds max message size %d: want a positive number of bytes", c.KDSMaxMessageSize))
	}
	if c.RBACForm != "" {
		if _, err := rbac.ParseForm(c.RBACForm); err != nil {
			errs = append(errs, fmt.Errorf("rbac form: %w", err))
		}
	}
	if _, err := accesslog.ParseSinks(c.AccessLog); err != nil {
		errs = append(errs, fmt.Errorf("access log: %w", err))
	}
	if _, err := server.ParseTLSVersion(c.TLSMinVersion); err != nil {
		errs = append(errs, err)
	}
	if err := server.CheckHosts(c.TLSNames); err != nil {
		errs = append(errs, fmt.Errorf("--tls-names: %w", err))
	}
	if err := c.Store.Validate(); err != nil {
		errs = append(errs, err)
	}
	if err := c.validateReplicas(); err != nil {
		errs = append(errs, err)
	}
	if err := c.Injection.validate(c.Kubernetes != nil && c.Kubernetes.WebhookAddress != ""); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, c.validateGlobal(joins)...)...)
}

func (c *Config) validateGlobal(joins bool) []error {
	trust := 0
	for _, given := range []bool{c.GlobalCA != "", c.GlobalCASHA256 != "", c.GlobalInsecure} {
		if given {
			trust++
		}
	}
	if joins && (trust > 0 || strings.HasPrefix(c.Global, "grpc:")) {
		return []error{errors.New("global: a zone that joins pins its global's CA and uses TLS: omit the trust settings, and use grpcs://")}
	}
	if c.Global == "" {
		if trust > 0 {
			return []error{errors.New("global: the trust settings of a global are set, but not its URL")}
		}
		return nil
	}
	var errs []error
	urls, err := c.globals()
	if err != nil {
		errs = append(errs, err)
	}
	for _, u := range urls {
		switch {
		case u.Scheme == "grpc" && !isLoopbackHost(u.Hostname()):
			errs = append(errs, fmt.Errorf("global %q: plaintext is for loopback only: use grpcs://", u))
		case u.Scheme == "grpc" && trust > 0:
			errs = append(errs, fmt.Errorf("global %q is plaintext: the trust settings need grpcs://", u))
		case u.Scheme == "grpcs" && trust != 1 && !joins:
			errs = append(errs, errors.New("global: want exactly one of its CA file, the SHA-256 of its CA, and insecure"))
			return errs
		}
	}
	if pin, err := hex.DecodeString(c.GlobalCASHA256); c.GlobalCASHA256 != "" && (err != nil || len(pin) != 32) {
		errs = append(errs, errors.New("global CA SHA-256: want 64 hex digits, as the global prints them at start"))
	}
	return errs
}

// withDefaults returns the configuration with defaults for the empty fields.
func (c Config) withDefaults() Config {
	c.APIAddress = cmp.Or(c.APIAddress, "127.0.0.1:5681")
	c.XDSAddress = cmp.Or(c.XDSAddress, "127.0.0.1:5678")
	c.DiagnosticsAddress = cmp.Or(c.DiagnosticsAddress, "127.0.0.1:5680")
	c.IdentityOverlap = cmp.Or(c.IdentityOverlap, defaultIdentityOverlap)
	c.SystemNamespace = cmp.Or(c.SystemNamespace, resources.DefaultSystemNamespace)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Store.Path, c.Store.Trace, c.Store.Log = filepath.Join(c.DataDir, backend.File),
		filepath.Join(c.DataDir, access.LogPath), c.Log
	c.Store.Now = c.Now
	return c
}

// sinks returns the destinations of the proxies' access logs.
func (c *Config) sinks() ([]accesslog.Sink, error) {
	sinks, err := accesslog.ParseSinks(c.AccessLog)
	if err != nil {
		return nil, fmt.Errorf("access log: %w", err)
	}
	return sinks, nil
}
