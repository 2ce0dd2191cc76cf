package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// leastPatience is how long a step of the start may take, if the configuration does not allow more.
const leastPatience = 2 * time.Minute

// Config says what a node is made of.
type Config struct {
	// Programs is the folder that build.sh fills.
	Programs string
	// Dir is a folder for the node's state, logs, certificates and volumes. The caller removes it.
	Dir string
	// Patience is how long a step of the start may take; two minutes, if it is less.
	Patience time.Duration
}

// Node is a running cluster.
type Node struct {
	Config
	network

	ended chan error
	first *os.Process
}

// Start starts a cluster and waits until pods can run and names resolve.
func Start(ctx context.Context, c Config) (*Node, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("a node of Kubernetes needs root: it makes network namespaces")
	}
	if _, err := os.Stat(filepath.Join(c.Programs, "pause")); err != nil {
		return nil, fmt.Errorf("no programs of Kubernetes: run make tools-kubernetes (%w)", err)
	}
	c.Patience = max(c.Patience, leastPatience)
	n := &Node{Config: c, ended: make(chan error, 1)}
	var err error
	if n.network, err = claimNetwork(ctx); err != nil {
		return nil, err
	}
	if err = n.start(ctx); err != nil {
		err = fmt.Errorf("%w\n%s", err, n.Logs(20))
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	for _, dir := range []string{"log", "pods/pods", "pods/containers", "kubelet", "cni", "plugins", "images"} {
		if err := os.MkdirAll(filepath.Join(n.Dir, dir), 0o755); err != nil { //nolint:gosec // pods' users read there
			return err
		}
	}
	for _, step := range []func() error{n.writeKeys, n.writeConfig, n.makeCgroups, n.run} {
		if err := step(); err != nil {
			return err
		}
	}
	steps := []struct {
		what    string
		command []string
	}{
		{"the API server to be ready", []string{"get", "--raw", "/readyz"}},
		{"the node to be ready", []string{"wait", "--for=condition=Ready", "node/" + n.name, "--timeout=1s"}},
		{"the default service account", []string{"get", "serviceaccount", "default"}},
	}
	for _, step := range steps {
		if err := n.until(ctx, step.what, step.command...); err != nil {
			return err
		}
	}
	for _, program := range []string{"pause", "coredns"} {
		image := Image{Name: "localhost/" + program + ":dev", Entrypoint: "/" + program,
			Files: map[string]string{program: filepath.Join(n.Programs, program)}}
		if err := n.Load(ctx, &image); err != nil {
			return err
		}
	}
	if out, err := n.Apply(ctx, strings.ReplaceAll(dnsManifest, "DNS_ADDRESS", n.dns)); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return n.until(ctx, "the DNS", "-n", "kube-system", "wait", "--for=condition=Available", "deploy/coredns", "--timeout=1s")
}

// until runs kubectl until it succeeds.
func (n *Node) until(ctx context.Context, what string, command ...string) error {
	return cluster.Until(ctx, n.Patience, what, func(ctx context.Context) error {
		select {
		case err := <-n.ended:
			n.ended <- err
			return cluster.Final(fmt.Errorf("the node ended: %w", err))
		default:
		}
		out, err := n.Kubectl(ctx, command...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// run starts the node's first process. It ends with this process, however this one ends.
func (n *Node) run() error {
	log, err := os.Create(filepath.Join(n.Dir, "log", "node.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	script := filepath.Join(n.Dir, "first.sh")
	if err := os.WriteFile(script, []byte(firstScript), 0o700); err != nil { //nolint:gosec // it is run
		return err
	}
	cmd := exec.Command("nsenter", "--net=/run/netns/"+n.name, "unshare", "--mount", "--propagation", "private", "--pid",
		"--fork", "--kill-child", "--mount-proc", "--uts", "--ipc", "bash", script)
	cmd.Env = append(os.Environ(), "PATH="+n.Programs+":"+os.Getenv("PATH")+":/usr/sbin:/sbin", "DIR="+n.Dir, "NODE="+n.name,
		"NODE_ADDRESS="+n.address, "SERVICES="+n.services)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig is sent when the thread ends, not the process
		err := cmd.Start()
		started <- err
		if err == nil {
			n.ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	n.first = cmd.Process
	return nil
}

// Stop ends the cluster and removes what it left on this machine, but not Dir.
func (n *Node) Stop() error {
	if n.first != nil {
		_ = n.first.Kill()
		select {
		case err := <-n.ended:
			n.ended <- err // for whoever stops it once more
		case <-time.After(n.Patience):
			return fmt.Errorf("the first process of %s does not end", n.name)
		}
	}
	return errors.Join(n.release(), n.removeCgroups())
}

// Address is the address of the node, which this machine reaches.
func (n *Node) Address() string { return n.address }

// Kubeconfig is the file by which an administrator reaches the API server.
func (n *Node) Kubeconfig() string { return filepath.Join(n.Dir, "admin.kubeconfig") }

// Kubectl runs kubectl as an administrator and returns all that it prints.
func (n *Node) Kubectl(ctx context.Context, args ...string) (string, error) {
	return n.kubectl(ctx, nil, args...)
}

// Apply applies manifests as an administrator and returns all that kubectl prints.
func (n *Node) Apply(ctx context.Context, manifests string, args ...string) (string, error) {
	return n.kubectl(ctx, strings.NewReader(manifests), append([]string{"apply", "-f", "-"}, args...)...)
}

// Feed runs kubectl as an administrator with a standard input, and returns all that it prints.
func (n *Node) Feed(ctx context.Context, in string, args ...string) (string, error) {
	return n.kubectl(ctx, strings.NewReader(in), args...)
}

func (n *Node) kubectl(ctx context.Context, in io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(n.Programs, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.Kubeconfig())
	cmd.Stdin = in
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// inside returns a command that sees the node's mounts, network and processes.
func (n *Node) inside(ctx context.Context, program string, args ...string) (*exec.Cmd, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", n.first.Pid, n.first.Pid))
	if err != nil {
		return nil, err
	}
	child := strings.Fields(string(raw))
	if len(child) == 0 {
		return nil, fmt.Errorf("%s has no process", n.name)
	}
	all := []string{"--target", child[0], "--mount", "--net", "--pid", "--", filepath.Join(n.Programs, program)}
	return exec.CommandContext(ctx, "nsenter", append(all, args...)...), nil
}

// Logs returns the last lines of each log.
func (n *Node) Logs(lines int) string {
	files, _ := filepath.Glob(filepath.Join(n.Dir, "log", "*.log"))
	var b strings.Builder
	for _, file := range files {
		raw, _ := os.ReadFile(file)
		all := strings.Split(strings.TrimSpace(string(raw)), "\n")
		fmt.Fprintf(&b, "-- %s\n%s\n", filepath.Base(file), strings.Join(all[max(0, len(all)-lines):], "\n"))
	}
	return b.String()
}
