// Command demo shows a mesh in Kubernetes: a global in one cluster, zone-1 and zone-3 in two others, and zone-2 beside
// them on this machine. Users write the policies of the user stories by kubectl. It shows what real Envoys decide,
// including calls from pods of another cluster and from this machine. It also shows how long callers wait under a
// producer's and a consumer's policy, whom a shadow deny would deny, the roles of policies, their names elsewhere, and
// their conditions.
//
//	demo-kubernetes [-once] [-envoy PATH] [-bin FOLDER]
//
// It needs root, and the programs that make tools-kubernetes builds. With -once (or ONCE=1) it ends with status 0 only
// when everything was as expected; otherwise it stays up until Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// errUnexpected reports that a row of the tables was not as expected.
var errUnexpected = errors.New("not everything was as expected")

// tailLines is the number of lines of each log that are shown after a failure.
const tailLines = 15

type options struct {
	once       bool
	envoy, bin string
}

func main() {
	o := options{once: os.Getenv("ONCE") != "" && os.Getenv("ONCE") != "0"}
	flag.BoolVar(&o.once, "once", o.once, "end after the tables, with status 0 only when all is as expected; also ONCE=1")
	flag.StringVar(&o.envoy, "envoy", "", "`path` of Envoy; otherwise ENVOY, the one that make installed, or one on the PATH")
	flag.StringVar(&o.bin, "bin", "", "`folder` of the three programs; otherwise they are built")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demo(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo starts everything, shows everything and stops everything.
func demo(ctx context.Context, o options, out io.Writer) (err error) {
	m := &mesh{out: out, workloads: map[string]*cluster.Workload{}, clients: map[string]*cluster.Client{}}
	if m.root, err = cluster.Root(); err != nil {
		return err
	}
	if m.envoy, err = cluster.FindEnvoy(o.envoy); err != nil {
		return err
	}
	if m.dir, err = os.MkdirTemp("", "causeway-demo-"); err != nil {
		return err
	}
	defer func() { err = m.end(ctx, err) }()
	if m.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	if o.bin == "" {
		m.bin = filepath.Join(m.dir, "bin")
		if err := m.step("building the programs", func() error { return cluster.Build(ctx, m.bin) }); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := m.start(ctx); err != nil {
		return err
	}
	rows, err := m.play(ctx)
	fmt.Fprintln(out)
	printRows(out, rows)
	if err != nil {
		return err
	}
	for i := range rows {
		if !rows[i].ok() {
			return errUnexpected
		}
	}
	fmt.Fprintf(out, "\nAll as expected, in %.1f s.\n", time.Since(start).Seconds())
	if o.once {
		return nil
	}
	m.printNext()
	<-ctx.Done()
	return nil
}

// end stops everything. After a failure, it shows the ends of the logs.
func (m *mesh) end(ctx context.Context, failed error) error {
	if failed != nil && ctx.Err() == nil {
		m.tails(os.Stderr)
	}
	return errors.Join(failed, m.close(), os.RemoveAll(m.dir))
}

// step prints what is about to happen, and afterwards how long it took.
func (m *mesh) step(what string, do func() error) error {
	start := time.Now()
	fmt.Fprintf(m.out, "· %s", what)
	err := do()
	fmt.Fprintf(m.out, " (%.1f s)\n", time.Since(start).Seconds())
	return err
}

// printNext suggests what to try next.
func (m *mesh) printNext() {
	fmt.Fprintln(m.out, "\nIt stays up until Ctrl-C. To try next, with kubectl of .tools/kubernetes:")
	for _, n := range []struct{ why, kubeconfig, command string }{
		{"the policies of the mesh, on the global", m.global.Kubeconfig(), "get kuma-policies -A"},
		{"the same in zone-1, with what owners wrote there", m.one.Kubeconfig(), "get kuma-policies -A"},
		{"a policy that is not valid", m.one.Kubeconfig(), "-n backend-ns patch mtp by-backend-owner --type=merge -p '{\"spec\":{\"defaults\":{}}}'"},
	} {
		fmt.Fprintf(m.out, "\n  # %s\n  KUBECONFIG=%s kubectl %s\n", n.why, n.kubeconfig, n.command)
	}
	fmt.Fprintln(m.out)
}
