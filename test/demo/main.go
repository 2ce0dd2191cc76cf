// Command demo runs Causeway as a user would see it: a global, two zones, a real Envoy with an application in each, and
// clients with identities of both. It plays the user stories, prints who could call whom and which policy decided, and
// how long a change took to be enforced. The files that it applies are beside this one.
//
//	demo [-once] [-envoy PATH] [-bin FOLDER]
//
// With -once (or ONCE=1) it ends with status 0 only when everything was as expected; otherwise it stays up until
// Ctrl-C.
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

// errInterrupted reports that Ctrl-C ended the demo early.
var errInterrupted = errors.New("interrupted")

// tailLines is the number of lines of each log that are shown after a failure.
const tailLines = 15

type options struct {
	once       bool
	envoy, bin string
}

func main() {
	o := options{once: os.Getenv("ONCE") != "" && os.Getenv("ONCE") != "0"}
	flag.BoolVar(&o.once, "once", o.once, "end after the tables, with status 0 only when all is as expected; also ONCE=1")
	flag.StringVar(&o.envoy, "envoy", "",
		"`path` of Envoy; otherwise ENVOY, the one that make installed, or one on the PATH")
	flag.StringVar(&o.bin, "bin", "", "`folder` of the three programs; otherwise the demo's own folder, or they are built")
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
	envoy, err := cluster.FindEnvoy(o.envoy)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "causeway-demo-")
	if err != nil {
		return err
	}
	bin, err := programs(ctx, o.bin, dir)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	c, err := cluster.New(cluster.Config{Bin: bin, Envoy: envoy, Dir: dir})
	if err != nil {
		return err
	}
	m := &mesh{
		Cluster: c, out: out, servers: map[string]*cluster.Server{},
		workloads: map[string]*cluster.Workload{}, clients: map[string]*cluster.Client{},
	}
	defer func() { err = m.end(ctx, err) }()
	start := time.Now()
	if err := m.play(ctx); err != nil {
		return err
	}
	m.told = true
	fmt.Fprintf(out, "\nAll as expected, in %.1f s.\n", time.Since(start).Seconds())
	if o.once {
		return nil
	}
	m.printNext(out, bin)
	<-ctx.Done()
	return nil
}

// end stops everything. After a failure, it shows the ends of the logs and keeps them.
func (m *mesh) end(ctx context.Context, failed error) error {
	if ctx.Err() != nil {
		failed = nil
		fmt.Fprintln(m.out, "\ntaking everything down")
		if !m.told {
			failed = errInterrupted
		}
	}
	if failed != nil && !errors.Is(failed, errInterrupted) {
		m.Tails(os.Stderr, tailLines)
		return errors.Join(failed, m.close())
	}
	return errors.Join(failed, m.close(), os.RemoveAll(m.Dir()))
}

// play shows everything. It returns errUnexpected after the last table if a row was not as expected.
func (m *mesh) play(ctx context.Context) error {
	if err := m.start(ctx); err != nil {
		return err
	}
	ok := true
	var rows []row
	err := m.step("playing the user stories", func() error {
		for _, s := range stories() {
			told, err := m.tell(ctx, s)
			rows = append(rows, told...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Fprintln(m.out)
	printRows(m.out, rows)
	if err != nil {
		return err
	}
	for _, r := range rows {
		ok = ok && r.ok
	}
	deliveries, err := m.showDelivery(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(m.out)
	printDeliveries(m.out, deliveries)
	for _, c := range deliveries {
		for _, s := range c.where {
			ok = ok && s.ok()
		}
	}
	calls, err := m.showCalls(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(m.out)
	printCalls(m.out, calls)
	for i := range calls {
		ok = ok && calls[i].ok()
	}
	owned, err := m.showOwned(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(m.out)
	printOwned(m.out, owned)
	for i := range owned {
		ok = ok && owned[i].err == nil
	}
	changes, err := m.measureChanges(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(m.out)
	printChanges(m.out, changes)
	fmt.Fprintln(m.out)
	explained, err := m.why(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(m.out)
	reported, err := m.wouldDeny(ctx)
	if err != nil {
		return err
	}
	if !ok || !explained || !reported {
		return errUnexpected
	}
	return nil
}

// programs returns the folder of the three programs: the given one, the demo's own if they are there, or a new one into
// which it builds them.
func programs(ctx context.Context, given, dir string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	if self, err := os.Executable(); err == nil {
		if _, err := os.Stat(filepath.Join(filepath.Dir(self), "causeway-zone")); err == nil {
			return filepath.Dir(self), nil
		}
	}
	fmt.Println("· building the programs")
	bin := filepath.Join(dir, "bin")
	return bin, cluster.Build(ctx, bin)
}
