package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/server/porttest"
)

// spireTimeout is how long a SPIRE server or agent may take until it is ready.
const spireTimeout = 60 * time.Second

// Spire is a SPIRE server and one agent, which recognises programs by the paths of their files.
type Spire struct {
	c                 *Cluster
	bin, dir          string
	domain            spiffeid.TrustDomain
	server, agent     *Process
	serverPort        int
	serverAPI, socket string
}

// FindSpire returns the folder of spire-server and spire-agent that `make test-spire` installed in the repository. Its
// error wraps fs.ErrNotExist if they are missing.
func FindSpire() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, ".tools", "bin")
	for _, name := range []string{"spire-server", "spire-agent"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return "", err
		}
	}
	return bin, nil
}

// StartSpireServer starts the server of a trust domain with the programs in the folder bin, and waits until it is
// ready.
func (c *Cluster) StartSpireServer(ctx context.Context, bin, domain string) (*Spire, error) {
	s := &Spire{c: c, bin: bin, dir: filepath.Join(c.cfg.Dir, "spire")}
	s.serverAPI, s.socket = filepath.Join(s.dir, "api.sock"), filepath.Join(s.dir, "agent.sock")
	var err error
	if s.domain, err = spiffeid.TrustDomainFromString(domain); err != nil {
		return nil, err
	}
	if s.serverPort, err = porttest.Free(); err != nil {
		return nil, err
	}
	s.server, err = s.start(ctx, "spire-server", spireServerConfig, s.serverAPI)
	return s, err
}

// StartAgent starts an agent that joins with a token, and waits until it serves. The agent needs the server's trust
// bundle to trust the server.
func (s *Spire) StartAgent(ctx context.Context) error {
	bundle, err := s.ask(ctx, "bundle", "show")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "bundle.pem"), bundle, 0o600); err != nil {
		return err
	}
	out, err := s.ask(ctx, "token", "generate", "-spiffeID", s.agentID(), "-output", "json")
	if err != nil {
		return err
	}
	var token struct{ Value string }
	if err := json.Unmarshal(out, &token); err != nil || token.Value == "" {
		return fmt.Errorf("a join token of SPIRE: %w in %s", err, out)
	}
	s.agent, err = s.start(ctx, "spire-agent", spireAgentConfig, s.socket, "-joinToken", token.Value)
	return err
}

// start runs one of the two programs with a configuration and waits until it reports that it is healthy.
func (s *Spire) start(ctx context.Context, program, config, socket string, args ...string) (*Process, error) {
	data := filepath.Join(s.dir, program)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	text := strings.NewReplacer("{DIR}", s.dir, "{DATA}", data, "{DOMAIN}", s.domain.Name(), "{PORT}",
		strconv.Itoa(s.serverPort), "{SOCKET}", socket).Replace(config)
	file := filepath.Join(s.dir, program+".conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p, err := s.c.process(program, filepath.Join(s.bin, program), append([]string{"run", "-config", file}, args...))
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	return p, Until(ctx, spireTimeout, program+" to be healthy", func(ctx context.Context) error {
		if err := p.Alive(); err != nil {
			return err
		}
		if _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_, err := output(ctx, nil, nil, filepath.Join(s.bin, program), "healthcheck", "-socketPath", socket)
		return err
	})
}

// Register makes the server issue the SPIFFE ID with the path to every process that runs the program.
func (s *Spire) Register(ctx context.Context, path, program string) error {
	return s.entry(ctx, "create", path, program, time.Hour)
}

// Reissue changes the lifetime of an entry's identities. The agent then fetches another certificate at its next sync.
func (s *Spire) Reissue(ctx context.Context, path, program string, lifetime time.Duration) error {
	return s.entry(ctx, "update", path, program, lifetime)
}

func (s *Spire) entry(ctx context.Context, verb, path, program string, lifetime time.Duration) error {
	_, err := s.ask(ctx, "entry", verb, "-entryID", strings.ReplaceAll(strings.Trim(path, "/"), "/", "-"), "-parentID",
		s.agentID(), "-spiffeID", s.ID(path),
		"-selector", "unix:path:"+program, "-x509SVIDTTL", strconv.Itoa(int(lifetime/time.Second)))
	return err
}

// Bundle returns the CAs that the server signs with now.
func (s *Spire) Bundle(ctx context.Context) (*x509bundle.Bundle, error) {
	out, err := s.ask(ctx, "bundle", "show")
	if err != nil {
		return nil, err
	}
	return x509bundle.Parse(s.domain, out)
}

// ID returns the SPIFFE ID with a path in the trust domain.
func (s *Spire) ID(path string) string { return s.domain.IDString() + path }

func (s *Spire) agentID() string { return s.ID("/agent") }

// Socket returns the socket on which the agent serves secrets to proxies.
func (s *Spire) Socket() string { return s.socket }

// ask runs a command of the server.
func (s *Spire) ask(ctx context.Context, args ...string) ([]byte, error) {
	return output(ctx, nil, nil, filepath.Join(s.bin, "spire-server"), append(args, "-socketPath", s.serverAPI)...)
}

// The intervals determine how long a change of an entry takes to reach a proxy. SPIRE's defaults are 5 s. Programs are
// not hashed, because an Envoy is large.
const (
	spireServerConfig = `server {
  bind_address = "127.0.0.1"
  bind_port = {PORT}
  socket_path = "{SOCKET}"
  trust_domain = "{DOMAIN}"
  data_dir = "{DATA}"
  log_level = "INFO"
  experimental { cache_reload_interval = "1s" }
}
plugins {
  DataStore "sql" { plugin_data { database_type = "sqlite3", connection_string = "{DATA}/datastore.sqlite3" } }
  NodeAttestor "join_token" { plugin_data {} }
  KeyManager "memory" { plugin_data {} }
}
`
	spireAgentConfig = `agent {
  server_address = "127.0.0.1"
  server_port = {PORT}
  socket_path = "{SOCKET}"
  trust_domain = "{DOMAIN}"
  trust_bundle_path = "{DIR}/bundle.pem"
  data_dir = "{DATA}"
  log_level = "INFO"
  experimental { sync_interval = "1s" }
}
plugins {
  NodeAttestor "join_token" { plugin_data {} }
  KeyManager "memory" { plugin_data {} }
  WorkloadAttestor "unix" { plugin_data { discover_workload_path = true, workload_size_limit = -1 } }
}
`
)
