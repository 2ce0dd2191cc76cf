package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// The numbers of clusters that this package starts; each has networks of its own.
const (
	firstNumber = 20
	lastNumber  = 49
)

// network is where a cluster stands: a network namespace, joined to this machine by one link.
type network struct {
	// name is that of the namespace, of the link's end on this machine, and of the node.
	name string
	// Machine is the address of this machine for the cluster's pods. address is the node's.
	Machine, address string
	// pods and services are networks, dns and api the addresses of two services.
	pods, services, dns, api string
	// claim is locked while the process that started the cluster lives.
	claim *os.File
}

func networkOf(number int) network {
	return network{
		name:    fmt.Sprintf("cw%d", number),
		Machine: fmt.Sprintf("172.30.%d.1", number), address: fmt.Sprintf("172.30.%d.2", number),
		pods: fmt.Sprintf("10.%d.0.0/16", 100+number), services: fmt.Sprintf("10.%d.0.0/16", 200+number),
		dns: fmt.Sprintf("10.%d.0.10", 200+number), api: fmt.Sprintf("10.%d.0.1", 200+number),
	}
}

// claimNetwork makes the network of the first number that nobody uses. A namespace of which nobody has the lock, and in
// which no process is left, is of a cluster that ended without cleaning up.
func claimNetwork(ctx context.Context) (network, error) {
	var last error
	for number := firstNumber; number <= lastNumber; number++ {
		n := networkOf(number)
		claim, err := lock(n.name)
		if err != nil {
			last = err
			continue
		}
		if out, err := ip(ctx, "netns", "pids", n.name); err == nil && strings.TrimSpace(out) == "" {
			_ = n.release()
		}
		if out, err := ip(ctx, "netns", "add", n.name); err != nil {
			last = fmt.Errorf("ip netns add %s: %w: %s", n.name, err, out)
			_ = claim.Close()
			continue
		}
		n.claim = claim
		if err := n.connect(ctx); err != nil {
			return n, errors.Join(err, n.release())
		}
		return n, nil
	}
	return network{}, fmt.Errorf("this machine gives a cluster no network namespace: each of cw%d to cw%d is taken or refused: %w",
		firstNumber, lastNumber, last)
}

// lock locks the name of a network, for as long as the file is open: two clusters that start at once must not take each
// other's namespace, in which no process is yet, for one that is left over.
func lock(name string) (*os.File, error) {
	f, err := os.OpenFile("/run/causeway-"+name+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is taken: %w", name, err), f.Close())
	}
	return f, nil
}

func (n *network) connect(ctx context.Context) error {
	in := []string{"netns", "exec", n.name}
	for _, args := range [][]string{
		{"link", "add", n.name, "type", "veth", "peer", "name", "eth0", "netns", n.name},
		{"addr", "add", n.Machine + "/30", "dev", n.name}, {"link", "set", n.name, "up"},
		append(in, "ip", "link", "set", "lo", "up"), append(in, "ip", "addr", "add", n.address+"/30", "dev", "eth0"),
		append(in, "ip", "link", "set", "eth0", "up"), append(in, "ip", "route", "add", "default", "via", n.Machine),
		append(in, "sysctl", "-qw", "net.ipv4.ip_forward=1"),
		{"route", "replace", n.pods, "via", n.address}, {"route", "replace", n.services, "via", n.address},
	} {
		if out, err := ip(ctx, args...); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	// Bridged packets of a pod to a service pass the rules of kube-proxy only where the kernel has this switch.
	_, _ = ip(ctx, append(in, "sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1")...)
	return nil
}

// release removes the link, and the routes with it, and the namespace.
func (n *network) release() error {
	if n.name == "" {
		return nil
	}
	ctx := context.Background()
	_, _ = ip(ctx, "link", "del", n.name)
	if out, err := ip(ctx, "netns", "del", n.name); err != nil && !strings.Contains(out, "No such file") {
		return fmt.Errorf("ip netns del %s: %w: %s", n.name, err, out)
	}
	claim := n.claim
	n.claim = nil // it may be released once more
	if claim == nil {
		return nil
	}
	return claim.Close()
}

// ip runs the program of that name and returns all that it prints.
func ip(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	return string(out), err
}
