// Package backend opens the store that a server is configured to use: its own file, or a prefix in an etcd cluster that
// it shares with other servers. It must not depend on the contents of the store.
package backend

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
	"github.com/causeway-mesh/causeway/resources/store/etcd"
)

// These are the kinds of stores.
const (
	Bolt = "bolt"
	Etcd = "etcd"
)

// File is the file name of a bolt store in a server's data folder.
const File = "causeway.db"

// PasswordEnv is the variable with the password for etcd. There is no flag, because the list of processes would show
// it.
const PasswordEnv = "CAUSEWAY_ETCD_PASSWORD" //nolint:gosec // the name of a variable

// Config selects and configures a store.
type Config struct {
	// Kind is Bolt, the default, or Etcd.
	Kind string
	// Path is the file of a bolt store.
	Path string
	// Trace, if set, is a file that the server creates after the file of a bolt store. If it exists and the store's file
	// does not, the store was lost: Open fails with ErrLost instead of starting an empty one.
	Trace string
	// Endpoints, Prefix, CAFile, CertFile, KeyFile, Username and Password are for etcd. Endpoints are client URLs, all
	// http:// or all https://. CAFile verifies the members; without it the system's CAs do. CertFile and KeyFile are
	// this server's own.
	Endpoints                 []string
	Prefix                    string
	CAFile, CertFile, KeyFile string
	Username, Password        string
	// StartTimeout is how long Insist retries while etcd does not answer. Zero means one attempt.
	StartTimeout time.Duration
	// Held, if set, is called by Healthy, and before each write; in a bolt store once for each group of batches. Its
	// error refuses the write. It must be quick.
	Held func() error
	// Keep is bolt.Config.Keep. A store in etcd does not call it.
	Keep func(revision uint64, changes map[resources.Key]*resources.Resource) error
	// Owner describes the owner of the store, for later programs that open it and for the backup in the folder of Path
	// that is made before the contents of etcd are migrated to a newer format. Without a Server, an older format in
	// etcd is refused and nothing is recorded.
	Owner archive.Header
	// Now is the clock for the times in resources, backups and file names; time.Now if nil.
	Now func() time.Time
	// Background is store.ViewConfig.Background; nil for none.
	Background func(store.Change) bool
	// Undecoded is store.ViewConfig.Undecoded.
	Undecoded bool
	// Registerer receives the store's metrics; nil means none. Log is slog.Default() by default.
	Registerer prometheus.Registerer
	Log        *slog.Logger
	// replacing is set by callers that replace existing contents.
	replacing bool
}

// Validate returns an error that names the wrong flag.
func (c *Config) Validate() error {
	switch c.Kind {
	case "", Bolt:
		if len(c.Endpoints) > 0 {
			return errors.New("--etcd-endpoints without --store etcd: add it, or leave the endpoints out")
		}
		return nil
	case Etcd:
	default:
		return fmt.Errorf("--store is %q: want %s or %s", c.Kind, Bolt, Etcd)
	}
	if len(c.Endpoints) == 0 {
		return errors.New(
			"--store etcd: name the members, such as --etcd-endpoints https://10.0.0.1:2379,https://10.0.0.2:2379")
	}
	secure := strings.HasPrefix(c.Endpoints[0], "https://")
	for _, e := range c.Endpoints {
		if !strings.HasPrefix(e, "https://") && !strings.HasPrefix(e, "http://") ||
			strings.HasPrefix(e, "https://") != secure {
			return fmt.Errorf("--etcd-endpoints has %q: want URLs that all begin with https://, or all with http://", e)
		}
	}
	if !secure && (c.CAFile != "" || c.CertFile != "") {
		return errors.New("--etcd-ca and --etcd-cert are for https:// endpoints")
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("--etcd-cert and --etcd-key belong together: set both")
	}
	if c.StartTimeout < 0 {
		return fmt.Errorf("--etcd-start-timeout is %s: want 0, which tries once, or more", c.StartTimeout)
	}
	if c.Username != "" && c.Password == "" {
		return fmt.Errorf("--etcd-username without a password: set %s", PasswordEnv)
	}
	return nil
}

// Store is an open store.
type Store struct {
	store.Store
	healthy func() error
	current func() error
	held    func() error
	// heldBefore is Held if each batch must call it before it is applied, or nil if the store calls it.
	heldBefore func() error
	shared     *etcd.Store
}

// Apply implements store.Store. An error of Config.Held refuses a batch with store.ErrUnavailable.
func (s *Store) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	if err := inPlace(s.heldBefore); err != nil {
		return nil, err
	}
	return s.Store.Apply(ctx, b)
}

func inPlace(held func() error) error {
	if held == nil {
		return nil
	}
	if err := held(); err != nil {
		return fmt.Errorf("%w (%w)", store.ErrUnavailable, err)
	}
	return nil
}

// SharedState returns the state beside the store that servers with the same store share, or nil for a store of one
// server.
func (s *Store) SharedState() *etcd.SharedState {
	if s.shared == nil {
		return nil
	}
	return s.shared.SharedState(0)
}

// Healthy returns nil while the store accepts writes, as far as is known. It returns at once.
func (s *Store) Healthy() error {
	if err := inPlace(s.held); err != nil {
		return err
	}
	return s.healthy()
}

// Answers returns nil while the store's data is current, as far as is known: for a shared store, while etcd answers and
// accepts writes. It returns at once.
func (s *Store) Answers() error { return s.healthy() }

// Current returns nil while reads return what was last written, as far as is known, even if the store refuses writes,
// as a full one does. It returns at once.
func (s *Store) Current() error {
	if err := inPlace(s.held); err != nil {
		return err
	}
	return s.current()
}

// Mark identifies the last write that this server knows in a shared store; empty for any other store.
func (s *Store) Mark() string {
	if s.shared == nil {
		return ""
	}
	return s.shared.Mark()
}

// Recognises reports whether the store contains the write of a Mark, or can no longer tell. Errors are etcd's.
func (s *Store) Recognises(ctx context.Context, mark string) (bool, error) {
	if s.shared == nil {
		return true, nil
	}
	return s.shared.Recognises(ctx, mark)
}

// Open opens the store. Errors: ErrLost, those of Validate, of bolt.Open and of etcd.Open.
func Open(ctx context.Context, c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Kind != Etcd {
		if err := c.checkLost(); err != nil {
			return nil, err
		}
		s, err := bolt.Open(ctx, bolt.Config{Path: c.Path, Held: c.Held, Keep: c.Keep, Program: c.Owner.Version,
			View: c.view(), Registerer: c.Registerer, Log: c.Log})
		if err != nil {
			return nil, err
		}
		return &Store{Store: s, healthy: s.Healthy, current: s.InPlace, held: c.Held}, nil
	}
	secured, err := c.tls()
	if err != nil {
		return nil, err
	}
	config := etcd.Config{
		Endpoints: c.Endpoints, Prefix: c.Prefix, TLS: secured, Username: c.Username, Password: c.Password,
		Program: c.Owner.Version, View: c.view(), Registerer: c.Registerer, Log: c.Log,
		Unfinished: c.replacing,
	}
	if c.Owner.Server != "" {
		config.Backup = c.keep
	}
	s, err := etcd.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	return &Store{Store: s, healthy: s.Healthy, current: s.Current, held: c.Held, heldBefore: c.Held, shared: s}, nil
}

func (c *Config) view() store.ViewConfig {
	return store.ViewConfig{Now: c.Now, Background: c.Background, Undecoded: c.Undecoded}
}

// ErrLost reports that a data folder has been used but the file of its store is gone.
var ErrLost = errors.New("the store's file is gone, and this folder has been in use")

// checkLost returns ErrLost, or an error of the operating system.
func (c *Config) checkLost() error {
	if c.Trace == "" {
		return nil
	}
	if _, err := os.Lstat(c.Path); !errors.Is(err, fs.ErrNotExist) {
		return nil // opening it reports any other problem
	}
	if _, err := os.Stat(c.Trace); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w: put it back, or restore a backup (causewayctl restore); a store in etcd needs --store etcd; to begin with an empty store, move %s away too, which tells what was in the lost one",
		c.Path, ErrLost, filepath.Dir(c.Trace))
}

// now returns the time of the configured clock.
func (c *Config) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

func (c *Config) logger() *slog.Logger {
	if c.Log == nil {
		return slog.Default()
	}
	return c.Log
}

// tls returns nil for endpoints without TLS.
func (c *Config) tls() (*tls.Config, error) {
	if !strings.HasPrefix(c.Endpoints[0], "https://") {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, Time: c.Now}
	if c.CAFile != "" {
		pool, err := credential.Pool("--etcd-ca", c.CAFile)
		if err != nil {
			return nil, err
		}
		out.RootCAs = pool
	}
	if c.CertFile != "" {
		pair, err := credential.Pair("--etcd-cert", c.CertFile, "--etcd-key", c.KeyFile)
		if err != nil {
			return nil, err
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}
