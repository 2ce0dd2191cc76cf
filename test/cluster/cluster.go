package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Config holds the paths of a cluster.
type Config struct {
	// Bin is the folder of causeway-global, causeway-zone and causewayctl: see Build.
	Bin string
	// Envoy is the program. Only proxies need it: see FindEnvoy.
	Envoy string
	// Dir holds data, logs and configurations. New creates it if it is missing. Nothing removes it.
	Dir string
}

// Cluster is the processes of one mesh. Its methods may be called concurrently.
type Cluster struct {
	cfg Config

	mu        sync.Mutex
	processes []*Process // all processes, in order of creation; guarded by mu
}

// stopTimeout is how long Close lets a process drain: a server ends within that time, whatever its peers do.
const stopTimeout = 10 * time.Second

// New creates the directory. It starts nothing.
func New(cfg Config) (*Cluster, error) {
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "logs"), 0o700); err != nil {
		return nil, err
	}
	return &Cluster{cfg: cfg}, nil
}

// Dir returns the folder of data and logs.
func (c *Cluster) Dir() string { return c.cfg.Dir }

// Close ends every process, the last started first, by SIGTERM and then by SIGKILL, and waits for all. It fails if one
// of them has panicked, even if the panic was recovered.
func (c *Cluster) Close() error {
	c.mu.Lock()
	processes := c.processes
	c.processes = nil
	c.mu.Unlock()
	var failed []error
	for i := range processes {
		p := processes[len(processes)-1-i]
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		if err := p.Stop(ctx); err != nil && !errors.Is(err, ErrNotRunning) {
			failed = append(failed, err)
		}
		cancel()
		p.Kill()
		if err := p.panicked(); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// Tails writes the last lines of each process's log, for a failed test.
func (c *Cluster) Tails(w io.Writer, lines int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		fmt.Fprintf(w, "--- %s (%s)\n%s\n", p.name, p.logFile, p.Tail(lines))
	}
}

// process creates a process that Close ends. name is also the name of its log file.
func (c *Cluster) process(name, program string, args []string) (*Process, error) {
	path := program
	if !strings.ContainsRune(program, filepath.Separator) {
		path = filepath.Join(c.cfg.Bin, program)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &Process{name: name, path: path, args: args, logFile: filepath.Join(c.cfg.Dir, "logs", name+".log")}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	return p, nil
}

// Output runs one of the cluster's programs to its end. An error includes the program's stderr, and wraps an
// *exec.ExitError if the status was not 0.
func (c *Cluster) Output(ctx context.Context, stdin io.Reader, program string, args ...string) ([]byte, error) {
	return c.OutputWith(ctx, nil, stdin, program, args...)
}

// OutputWith runs a program as Output does, with variables (NAME=value) in addition to the environment of the test.
func (c *Cluster) OutputWith(ctx context.Context, env []string, stdin io.Reader, program string, args ...string) ([]byte, error) {
	return output(ctx, env, stdin, filepath.Join(c.cfg.Bin, program), args...)
}

func output(ctx context.Context, env []string, stdin io.Reader, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr, cmd.Env = processAttributes(), append(os.Environ(), env...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err,
			strings.TrimSpace(errOut.String()))
	}
	return out.Bytes(), nil
}

// Said runs causewayctl against s and returns all that it prints, warnings included.
func (c *Cluster) Said(ctx context.Context, s *Server, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.cfg.Bin, "causewayctl"), append([]string{"--address", s.API.URL()}, args...)...)
	cmd.SysProcAttr = processAttributes()
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// Command creates a process of one of the cluster's programs, which Close ends. name is also the name of its log file.
func (c *Cluster) Command(name, program string, args ...string) (*Process, error) {
	return c.process(name, program, args)
}

// CTL runs causewayctl against s.
func (c *Cluster) CTL(ctx context.Context, s *Server, stdin io.Reader, args ...string) ([]byte, error) {
	return c.Output(ctx, stdin, "causewayctl", append([]string{"--address", s.API.URL()}, args...)...)
}
