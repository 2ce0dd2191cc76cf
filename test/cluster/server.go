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
)

// readyTimeout is how long a server may take until it serves.
const readyTimeout = 20 * time.Second

// Server is a control plane: the global or a zone.
type Server struct {
	*Process
	// API is its HTTP API.
	API *API
	// DataDir holds its store, certificates and identity keys.
	DataDir string

	program   string
	settings  []string // flags other than addresses
	ports     []string // keys of the ready file, which are the names of the address flags too
	hosts     map[string]string
	clock     *Clock
	in        *Namespace
	readyFile string
	addresses map[string]string
}

// GlobalConfig is what may differ between globals.
type GlobalConfig struct {
	// Name tells replicas apart; "global" by default.
	Name string
	// Anonymous lets zones in that have not joined: foreign ones, and those that tests speak as.
	Anonymous bool
	// Hosts are addresses to listen on instead of loopback, by the name of the port.
	Hosts map[string]string
	// Clock, when set, is what it goes by; Config.Bin is of BuildWithClocks then.
	Clock *Clock
	// In, when set, is where it runs: what it listens on by loopback is there too.
	In *Namespace
	// Args are more flags.
	Args []string
}

// ZoneConfig is what may differ between zones.
type ZoneConfig struct {
	Name string
	// Global is what the zone connects to; without one it runs alone.
	Global *Server
	// Link, when set, is the way to Global.
	Link *Link
	// Hosts are addresses to listen on instead of loopback, by the name of the port.
	Hosts map[string]string
	// Clock, when set, is what it goes by; Config.Bin is of BuildWithClocks then.
	Clock *Clock
	// Args are more flags.
	Args []string
}

// StartGlobal starts a global with TLS for its zones, and waits until it is ready.
func (c *Cluster) StartGlobal(ctx context.Context, cfg GlobalConfig) (*Server, error) {
	settings := cfg.Args
	if cfg.Anonymous {
		settings = append([]string{"--kds-insecure-anonymous"}, settings...)
	}
	return c.startServer(ctx, &Server{program: "causeway-global", settings: settings, hosts: cfg.Hosts, clock: cfg.Clock, in: cfg.In, ports: []string{"api", "kds", "diagnostics"}}, cmp.Or(cfg.Name, "global"))
}

// JoinString lets a zone join the global.
func (c *Cluster) JoinString(ctx context.Context, global *Server, zone string) (string, error) {
	var offer struct{ Join string }
	if err := global.API.Do(ctx, http.MethodPost, "/zones/"+zone+"/_join", map[string]bool{"rejoin": true}, &offer); err != nil {
		return "", fmt.Errorf("join string for %s: %w", zone, err)
	}
	return offer.Join, nil
}

// StartZone starts a zone that joins its global, and waits until it is ready: the first time that needs the global, and later
// it does not.
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
	return c.startServer(ctx, &Server{program: "causeway-zone", settings: settings, hosts: cfg.Hosts, clock: cfg.Clock, ports: []string{"api", "xds", "diagnostics"}}, cfg.Name)
}

func (c *Cluster) startServer(ctx context.Context, s *Server, name string) (*Server, error) {
	s.DataDir = filepath.Join(c.cfg.Dir, name)
	s.readyFile = filepath.Join(c.cfg.Dir, name+".ready.json")
	p, err := c.process(name, s.program, nil)
	if err != nil {
		return nil, err
	}
	p.env, p.in = s.clock.environment(), s.in
	s.Process = p
	return s, s.Start(ctx)
}

// Start runs the server, again after Kill or Stop, on the same data and the same addresses, and waits until it is ready.
func (s *Server) Start(ctx context.Context) error {
	s.args = append([]string{"run", "--data-dir", s.DataDir, "--ready-file", s.readyFile}, s.settings...)
	for _, port := range s.ports {
		address := cmp.Or(s.hosts[port], loopback) + ":0"
		if bound, ok := s.addresses[port]; ok {
			address = bound
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
	return nil
}

// Address is where the server listens: of api, diagnostics, kds (global) or xds (zone).
func (s *Server) Address(port string) string { return s.addresses[port] }

// CAFile is the CA of the certificate that a global shows to zones.
func (s *Server) CAFile() (string, error) {
	found, err := filepath.Glob(filepath.Join(s.DataDir, "*", "ca.crt"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%s: want one CA in %s, found %q", s.Name(), s.DataDir, found)
	}
	return found[0], nil
}

// Diagnostics reads a page of the diagnostics port; an answer that is not 200 is an error.
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

// Revision is that of the last change in the server's store.
func (s *Server) Revision(ctx context.Context) (float64, error) {
	return s.Metric(ctx, "causeway_store_revision")
}

// StartClone starts a zone with another's credentials, as a machine that was copied has them, on a store of its own. Args are its flags.
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

// SetArgs replaces the flags, other than those of addresses and folders, that the server is started with from now on.
func (s *Server) SetArgs(args ...string) { s.settings = args }

// SetPrograms has the server run the program of another folder from its next start on, as an upgrade does.
func (s *Server) SetPrograms(bin string) { s.path = filepath.Join(bin, s.program) }
