package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// errMissed reports that figures are over their goals.
var errMissed = errors.New("figures miss their goals")

// parts are the values of -only.
var parts = []string{"rounds", "global", "zone", "large", "replicas", "thin", "enforced", "storm", "strangers", "growth",
	"packages", "types", "page", "many", "crowded", "failover"}

type options struct {
	quick, floor, packages, permissions bool
	large                               bool
	document, bin, only, strangers      string
	floorProof                          string
	policyType, steps                   string
	idlers                              float64
	zones                               int
	soak, open                          time.Duration
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "one short round, without the largest sizes and the growth")
	flag.BoolVar(&o.large, "large", false, "the largest sizes only: what make bench leaves out, and those sizes of it that it shares")
	flag.StringVar(&o.document, "write", "", "`file` whose tables are written anew")
	flag.StringVar(&o.bin, "bin", "", "`folder` of the programs; built when empty")
	flag.StringVar(&o.only, "only", "", "measure one `part` only: rounds or its halves global and zone, large, replicas, thin, enforced, storm, strangers, "+
		"growth, packages, types, many, crowded or failover, or page, which only this measures")
	flag.StringVar(&o.policyType, "type", "", "of the types of policies, measure one `type` only, such as MeshTLS")
	flag.IntVar(&o.zones, "zones", 0, "`number` of zones of a storm or a failover; 10000 and 5000 when 0")
	flag.BoolVar(&o.packages, "packages", true, "run the packages' benchmarks too")
	flag.BoolVar(&o.permissions, "permissions", false, "measure only what permissions cost in Envoy")
	flag.DurationVar(&o.soak, "soak", 0, "instead: load a mesh for so long, and fail when something grows")
	flag.DurationVar(&o.open, "open", 0, "with -only page, keep pages open for so long, and measure only their memory")
	flag.StringVar(&o.steps, "steps", "", "with -only page, measure only these `steps` of web/speed, such as views,resting")
	flag.StringVar(&o.strangers, "strangers", "", "be strangers to a `server` (bench starts them itself)")
	flag.Float64Var(&o.idlers, "idlers", 0, "take so many `processors` for nothing (bench starts it itself)")
	flag.BoolVar(&o.floor, "floor", false, "be the bare sender (bench starts it itself)")
	flag.StringVar(&o.floorProof, "floor-proof", "", "with -floor, what it proves itself by")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench holds the folders and the state of a run.
type bench struct {
	bin, dir string
	started  int      // servers' folders so far
	failures []string // measurements that did not finish, for the verdict
	begin    time.Time
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6.1fs  %s\n", time.Since(b.begin).Seconds(), fmt.Sprintf(format, args...))
}

// failed records a part that could not be measured.
func (b *bench) failed(part string, err error) {
	b.failures = append(b.failures, fmt.Sprintf("%s: not measured: %v", part, err))
}

func run(ctx context.Context, o options) error {
	if o.floor {
		return serveFloor(ctx, o.floorProof)
	}
	if o.strangers != "" {
		return beStrangers(ctx, o.strangers)
	}
	if o.idlers > 0 {
		return beIdle(ctx, o.idlers)
	}
	dir, err := os.MkdirTemp("", "causeway-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{bin: o.bin, dir: dir, begin: time.Now()}
	if o.permissions {
		return b.permissions(ctx, o)
	}
	if o.only != "" && !slices.Contains(parts, o.only) {
		return fmt.Errorf("-only %s: want one of %s", o.only, strings.Join(parts, ", "))
	}
	if b.bin == "" && o.only != "packages" {
		b.bin = filepath.Join(dir, "bin")
		if err := cluster.Build(ctx, b.bin); err != nil {
			return err
		}
	}
	if o.soak > 0 {
		return b.soak(ctx, o.soak)
	}
	return b.measure(ctx, o)
}

// measure runs the plan, prints the results, and writes the document. A part that cannot be measured fails the run at
// its end. The results of the other parts are still printed and written.
func (b *bench) measure(ctx context.Context, o options) error {
	p := planOf(&o)
	var all []*table
	sections := map[string]string{}
	if p.rounds > 0 {
		rounds, err := b.run(ctx, p)
		if err != nil {
			return err
		}
		all = rounds
		var figures strings.Builder
		for _, t := range all {
			t.writeTo(&figures)
		}
		sections["figures"], sections["conditions"] = figures.String(), conditions(p)
	}
	if p.types > 0 {
		types := b.types(ctx, p)
		all, sections["types"] = append(all, types), types.String()
	}
	for _, part := range []struct {
		wanted, paced bool
		name, what    string
		measure       func() (*table, error)
	}{
		{p.large, false, "large", "large global", func() (*table, error) { return b.measureLarge(ctx) }},
		{p.replicas, false, "replicas", "replicas", func() (*table, error) { return b.measureReplicas(ctx) }},
		{p.thin, false, "thin", "thin links", func() (*table, error) { return b.measureThin(ctx, p) }},
		{p.enforced, true, "enforced", "enforced by an Envoy", func() (*table, error) { return b.measureEnforced(ctx) }},
		{p.many, true, "many", "many policies", func() (*table, error) { return b.measureMany(ctx, p) }},
		{p.crowded, true, "crowded", "a large zone", func() (*table, error) { return b.measureCrowded(ctx, p) }},
		{p.failover, true, "failover", "many zones lose their global", func() (*table, error) { return b.measureFailover(ctx, cmp.Or(o.zones, failoverZones)) }},
		{p.storm, true, "storm", "a storm of zones", func() (*table, error) { return b.measureStorm(ctx, cmp.Or(o.zones, stormZones)) }},
		{p.page && o.open == 0, false, "page", "the page", func() (*table, error) { return b.measurePage(ctx, pageOf(o)) }},
		{p.page && o.open > 0, false, "open", "open pages", func() (*table, error) { return b.measurePage(ctx, pageOf(o)) }},
		{p.strangers > 0, false, "strangers", "strangers", func() (*table, error) { return b.measureStrangers(ctx, p) }},
	} {
		if !part.wanted {
			continue
		}
		b.say("%s", part.what)
		var t *table
		var err error
		if part.paced {
			var pace float64
			pace, err = b.paced(ctx, func() (err error) { t, err = part.measure(); return err })
			if err == nil {
				t.pace(pace)
				t.add("the floor of the goals: a write to 100 bare streams, as a multiple of its cost there", "times", 0, pace)
			}
		} else {
			t, err = part.measure()
		}
		if err != nil {
			b.failed(part.what, err)
			continue
		}
		all, sections[part.name] = append(all, t), t.String()
	}
	if p.growth {
		name := "growth"
		if o.large {
			name = "growth-large"
		}
		if rows, err := b.growth(ctx, p.rows); err != nil {
			b.failed("growth", err)
		} else {
			sections[name] = rows
		}
	}
	if o.packages {
		b.say("the packages' benchmarks")
		if rows, err := packageBenchmarks(ctx, o.quick); err != nil {
			b.failed("the packages' benchmarks", err)
		} else {
			sections["packages"] = rows
		}
	}
	if o.only == "" && !o.large {
		b.say("permissions in Envoy")
		if permissions, err := b.measurePermissions(ctx, p); err != nil {
			b.failed("permissions in Envoy", err)
		} else {
			all, sections["permissions"] = append(all, permissions), permissions.String()
		}
	}
	for _, name := range []string{"conditions", "figures", "types", "large", "replicas", "thin", "enforced", "many", "crowded", "failover", "storm",
		"strangers", "growth", "growth-large", "permissions", "packages", "page", "open"} {
		fmt.Println(sections[name])
	}
	if o.document != "" {
		if err := rewrite(o.document, sections); err != nil {
			return err
		}
	}
	if lines := append(b.failures, missed(all)...); len(lines) > 0 {
		return fmt.Errorf("%w:\n  %s", errMissed, strings.Join(lines, "\n  "))
	}
	return nil
}

// planOf returns the plan of the options, and leaves out of them what -only leaves out.
func planOf(o *options) plan {
	p := fullPlan()
	switch {
	case o.large:
		p, o.packages = largePlan(), false
	case o.quick:
		p = quickPlan()
	}
	if o.only != "" {
		p.many, p.crowded, p.failover, p.enforced = o.only == "many", o.only == "crowded", o.only == "failover", o.only == "enforced"
		p.large, p.replicas, p.growth, o.packages = o.only == "large", o.only == "replicas", o.only == "growth",
			o.only == "packages"
		p.thin, p.storm, p.page = o.only == "thin", o.only == "storm", o.only == "page"
		p.policyType = o.policyType
		if o.only != "types" {
			p.types = 0
		}
		if o.only != "strangers" {
			p.strangers = 0
		}
		p.global, p.zone = o.only != "zone", o.only != "global"
		if !slices.Contains([]string{"rounds", "global", "zone"}, o.only) {
			p.rounds = 0
		}
	}
	return p
}

// permissions measures only the permissions.
func (b *bench) permissions(ctx context.Context, o options) error {
	p := fullPlan()
	if o.quick {
		p = quickPlan()
	}
	t, err := b.measurePermissions(ctx, p)
	if err != nil {
		return err
	}
	fmt.Println(t)
	if o.document != "" {
		if err := rewrite(o.document, map[string]string{"permissions": t.String()}); err != nil {
			return err
		}
	}
	if lines := missed([]*table{t}); len(lines) > 0 {
		return fmt.Errorf("%w:\n  %s", errMissed, strings.Join(lines, "\n  "))
	}
	return nil
}
