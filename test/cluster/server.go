package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/server/porttest"
)

// readyTimeout is how long a server may take until it is ready, with 100,000 policies on a machine that has other work.
const readyTimeout = time.Minute

// Server is a control plane: the global or a zone.
type Server struct {
	*Process
	// API is its HTTP API.
	API *API
	// DataDir holds its store, certificates and identity keys.
	DataDir string

	program   string
	settings  []string // flags other than addresses
	ports     []string // keys of the ready file, also the names of the address flags
	hosts     map[string]string
	clock     *Clock
	in        *Namespace
	env       []string
	readyFile string
	addresses map[string]string
}

// GlobalConfig holds the options of a global.
type GlobalConfig struct {
	// Name distinguishes replicas; "global" by default.
	Name string
	// Anonymous admits zones that have not joined: foreign ones, and those that tests impersonate.
	Anonymous bool
	// Hosts are addresses to listen on instead of loopback, by the name of the port.
	Hosts map[string]string
	// Clock, if set, is the server's clock. Config.Bin must then come from BuildWithClocks.
	Clock *Clock
	// In, if set, is the network that the server runs in. Its loopback is that network's.
	In *Namespace
	// Env are variables (NAME=value) in addition to the environment of the test.
	Env []string
	// Args are further flags.
	Args []string
}

// ZoneConfig holds the options of a zone.
type ZoneConfig struct {
	Name string
	// Global is the global that the zone connects to. Without one, the zone runs alone.
	Global *Server
	// Link, if set, is the path to Global.
	Link *Link
	// Hosts are addresses to listen on instead of loopback, by the name of the port.
	Hosts map[string]string
	// Clock, if set, is the server's clock. Config.Bin must then come from BuildWithClocks.
	Clock *Clock
	// Args are further flags.
	Args []string
}

// StartGlobal starts a global with TLS for its zones, and waits until it is ready.
func (c *Cluster) StartGlobal(ctx context.Context, cfg GlobalConfig) (*Server, error) {
	settings := cfg.Args
	if cfg.Anonymous {
		settings = append([]string{"--kds-insecure-anonymous"}, settings...)
	}
	return c.startServer(ctx, &Server{program: "causeway-global", settings: settings, hosts: cfg.Hosts,
		clock: cfg.Clock, in: cfg.In, env: cfg.Env, ports: []string{"api", "kds", "diagnostics"}}, cmp.Or(cfg.Name, "global"))
}

// JoinString returns a join string with which a zone can join the global.
func (c *Cluster) JoinString(ctx context.Context, global *Server, zone string) (string, error) {
	var offer struct{ Join string }
	if err := global.API.Do(ctx, http.MethodPost, "/zones/"+zone+"/_join", map[string]bool{"rejoin": true},
		&offer); err != nil {
		return "", fmt.Errorf("join string for %s: %w", zone, err)
	}
	return offer.Join, nil
}

// StartZone starts a zone that joins its global, and waits until it is ready. The first start needs the global; later
// ones do not.
func (c *Cluster) StartZone(ctx context.Context, cfg ZoneConfig) (*Server, error) {
	settings := append([]string{"--zone", cfg.Name}, cfg.Args...)
	if cfg.Global != nil {
		join, err := c.JoinString(ctx, cfg.Global, cfg.Name)
		if err != nil {
			return nil, err
		}
		settings = append(settings, "--join", join)
		if cfg.Link != nil {
			settings = append(settings, "--global", "grpcs://"+cfg.Link.Address())
		}
	}
	return c.startServer(ctx, &Server{program: "causeway-zone", settings: settings, hosts: cfg.Hosts, clock: cfg.Clock,
		ports: []string{"api", "xds", "diagnostics"}}, cfg.Name)
}

func (c *Cluster) startServer(ctx context.Context, s *Server, name string) (*Server, error) {
	s.DataDir = filepath.Join(c.cfg.Dir, name)
	s.readyFile = filepath.Join(c.cfg.Dir, name+".ready.json")
	p, err := c.process(name, s.program, nil)
	if err != nil {
		return nil, err
	}
	p.env, p.in = append(s.clock.environment(), s.env...), s.in
	s.Process = p
	return s, s.Start(ctx)
}

// Start runs the server, also after Kill or Stop, with the same data and the same addresses, and waits until it is
// ready.
func (s *Server) Start(ctx context.Context) error {
	s.args = append([]string{"run", "--data-dir", s.DataDir, "--ready-file", s.readyFile}, s.settings...)
	for _, port := range s.ports {
		address, err := s.listensOn(port)
		if err != nil {
			return err
		}
		s.args = append(s.args, "--"+port+"-address", address)
	}
	if err := os.Remove(s.readyFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.Process.Start(); err != nil {
		return err
	}
	return Until(ctx, readyTimeout, s.Name()+" to be ready", func(context.Context) error {
		if err := s.Alive(); err != nil {
			return err
		}
		return s.readReadyFile()
	})
}

// listensOn returns the address for a port. The first start picks one that nobody else gets while this process lives,
// so that it is still free at the next start. Other networks have ports of their own.
func (s *Server) listensOn(port string) (string, error) {
	if bound, ok := s.addresses[port]; ok {
		return bound, nil
	}
	host := cmp.Or(s.hosts[port], loopback)
	if host != loopback && host != "0.0.0.0" || s.in != nil {
		return host + ":0", nil
	}
	free, err := porttest.Free()
	return fmt.Sprintf("%s:%d", host, free), err
}

func (s *Server) readReadyFile() error {
	raw, err := os.ReadFile(s.readyFile)
	if err != nil {
		return err
	}
	addresses := map[string]string{}
	if err := json.Unmarshal(raw, &addresses); err != nil {
		return Final(fmt.Errorf("%s: %w", s.readyFile, err))
	}
	for _, port := range s.ports {
		if addresses[port] == "" {
			return Final(fmt.Errorf("%s: no address of %s in %s", s.readyFile, port, raw))
		}
	}
	s.addresses = addresses
	if s.API == nil {
		s.API = newAPI("http://"+addresses["api"], s.in)
	}
	s.API.http.CloseIdleConnections() // connections to the previous run: a PUT on one fails and is not retried
	return nil
}

// Address returns the address that the server listens on, for the port api, diagnostics, kds (global) or xds (zone).
func (s *Server) Address(port string) string { return s.addresses[port] }

// CAFile returns the file of the CA behind the certificate that a global presents to zones.
func (s *Server) CAFile() (string, error) {
	found, err := filepath.Glob(filepath.Join(s.DataDir, "*", "ca.crt"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%s: want one CA in %s, found %q", s.Name(), s.DataDir, found)
	}
	return found[0], nil
}

// Diagnostics reads a page of the diagnostics port. A response other than 200 is an error.
func (s *Server) Diagnostics(ctx context.Context, path string) ([]byte, error) {
	return fetchBy(ctx, s.API.http, "http://"+s.Address("diagnostics")+path)
}

// Metric reads a metric without labels from the diagnostics port.
func (s *Server) Metric(ctx context.Context, name string) (float64, error) {
	raw, err := s.Diagnostics(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("%s has no metric %s", s.Name(), name)
}

// Revision returns the revision of the server's store.
func (s *Server) Revision(ctx context.Context) (float64, error) {
	return s.Metric(ctx, "causeway_store_revision")
}

// StartClone starts a zone with another's credentials, like a copied machine, on its own store. args are its flags.
func (c *Cluster) StartClone(ctx context.Context, of *Server, name string, args ...string) (*Server, error) {
	dir := filepath.Join(c.cfg.Dir, name)
	if err := os.CopyFS(filepath.Join(dir, "membership"), os.DirFS(filepath.Join(of.DataDir, "membership"))); err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(of.DataDir, "secrets.key"))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "secrets.key"), key, 0o600); err != nil {
		return nil, err
	}
	return c.startServer(ctx, &Server{program: of.program, settings: args, ports: of.ports}, name)
}

// SetArgs replaces the flags for the next start, except for those of addresses and folders.
func (s *Server) SetArgs(args ...string) { s.settings = args }

// SetPrograms makes the server run the program of another folder from its next start on, like an upgrade.
func (s *Server) SetPrograms(bin string) { s.path = filepath.Join(bin, s.program) }
