package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoNamespaces reports that this machine does not allow network namespaces.
var ErrNoNamespaces = errors.New("this machine lets us make no network namespaces")

// Namespace is a separate network, like another machine's. Between it and this one is a router, a third network, which
// drops packets on demand, as the kernel does: in one direction or above one size, without notice to anyone. It needs
// root, and ip of iproute2.
type Namespace struct {
	name, router, device string
	// Here are two addresses of this machine, as the namespace sees it. There is the namespace's own.
	Here  [2]string
	There string
	fd    *os.File
}

// NewNamespace creates a namespace. Close removes it. The error wraps ErrNoNamespaces if the machine does not allow it.
func NewNamespace(ctx context.Context) (*Namespace, error) {
	tag := fmt.Sprintf("cw%06x", rand.IntN(1<<24))
	net := fmt.Sprintf("198.%d.%d.", 18+rand.IntN(2), rand.IntN(256)) // RFC 2544: reserved for tests
	n := &Namespace{name: tag + "n", router: tag + "r", device: tag + "h", Here: [2]string{net + "1", net + "9"},
		There: net + "6"}
	for _, command := range []string{
		"netns add " + n.router, "netns add " + n.name,
		"link add " + n.device + " type veth peer name here netns " + n.router,
		"-n " + n.router + " link add there type veth peer name out netns " + n.name,
		"addr add " + n.Here[0] + "/30 dev " + n.device, "addr add " + n.Here[1] + "/32 dev " + n.device,
		"link set " + n.device + " gso_max_segs 1 up",
		"-n " + n.router + " addr add " + net + "2/30 dev here", "-n " + n.router + " link set here up",
		"-n " + n.router + " addr add " + net + "5/30 dev there", "-n " + n.router + " link set there up",
		"-n " + n.router + " route add " + n.Here[1] + "/32 via " + n.Here[0],
		"-n " + n.name + " addr add " + n.There + "/30 dev out", "-n " + n.name + " link set out gso_max_segs 1 up",
		"-n " + n.name + " link set lo up", "-n " + n.name + " route add default via " + net + "5",
		"route add " + net + "4/30 via " + net + "2 src " + n.Here[0],
		"netns exec " + n.router + " sh -c", // forwards
	} {
		args := strings.Fields(command)
		if args[len(args)-1] == "-c" {
			args = append(args, "echo 1 > /proc/sys/net/ipv4/ip_forward")
		}
		if err := ip(ctx, args...); err != nil {
			n.Close()
			return nil, fmt.Errorf("%w: %w", ErrNoNamespaces, err)
		}
	}
	var err error
	if n.fd, err = os.Open("/var/run/netns/" + n.name); err != nil {
		n.Close()
		return nil, fmt.Errorf("%w: %w", ErrNoNamespaces, err)
	}
	return n, nil
}

func ip(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Lose makes the router drop all packets from one address to another, until mend is called.
func (n *Namespace) Lose(ctx context.Context, from, to string) (mend func() error, err error) {
	rule := func(verb string) []string {
		return []string{"-n", n.router, "rule", verb, "from", from, "to", to, "blackhole"}
	}
	if err := ip(ctx, rule("add")...); err != nil {
		return nil, err
	}
	return func() error { return ip(context.WithoutCancel(ctx), rule("del")...) }, nil
}

// Narrow makes the router drop packets of more than the given bytes, in both directions and without notice to the
// sender, until mend is called.
func (n *Namespace) Narrow(ctx context.Context, bytes int) (mend func() error, err error) {
	set := func(ctx context.Context, bytes int) error {
		return errors.Join(ip(ctx, "-n", n.router, "link", "set", "here", "mtu", fmt.Sprint(bytes)),
			ip(ctx, "-n", n.router, "link", "set", "there", "mtu", fmt.Sprint(bytes)))
	}
	return func() error { return set(context.WithoutCancel(ctx), 1500) }, set(ctx, bytes)
}

// Do runs fn in the namespace: sockets that fn opens and processes that it starts belong to it. A nil namespace runs fn
// here.
func (n *Namespace) Do(fn func() error) error {
	if n == nil {
		return fn()
	}
	runtime.LockOSThread()
	here, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer here.Close()
	if err := unix.Setns(int(n.fd.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return err
	}
	err = fn()
	if back := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, back) // the thread stays locked, so that no other goroutine uses it
	}
	runtime.UnlockOSThread()
	return err
}

// client returns an HTTP client inside the namespace.
func (n *Namespace) client() *http.Client {
	if n == nil {
		return &http.Client{Timeout: requestTimeout}
	}
	return &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			err = n.Do(func() error {
				conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
				return err
			})
			return conn, err
		},
	}}
}

// Close removes the networks. Processes in them lose their connections.
func (n *Namespace) Close() {
	ctx := context.Background()
	if n.fd != nil {
		_ = n.fd.Close()
	}
	_ = ip(ctx, "link", "del", n.device) // it may not exist yet
	_ = ip(ctx, "netns", "del", n.name)
	_ = ip(ctx, "netns", "del", n.router)
}
