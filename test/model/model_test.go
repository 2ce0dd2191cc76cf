package model

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

var (
	binFlag    = flag.String("bin", "", "folder of the programs; built when empty")
	operations = flag.Int("operations", 800, "operations of TestModel")
	crowdFlag  = flag.Int("crowd", 10, "simulated zones of TestModel beside its four")
	seedFlag   = flag.Uint64("seed", 1, "what makes TestModel's choices; a failure names it")
)

const (
	// between is the number of operations between two comparisons. betweenFaults is the most between two faults.
	between, betweenFaults = 100, 12
	// patience is how long servers may take to agree once nothing is broken. Zones wait longer after each failed
	// attempt.
	patience = 60 * time.Second
	// operatorComes is how long after the start of a comparison held deletions are accepted.
	operatorComes = 10 * time.Second
)

// built is the folder of the programs. TestMain sets it.
var built string

// programs returns the folder of the programs. What TestMain looks at is no input of a test's result, so each test looks
// again.
func programs() string {
	programtest.Look(programtest.Release)
	return built
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "causeway-model-")
	if err == nil {
		defer os.RemoveAll(dir)
		if built = *binFlag; built == "" {
			built = filepath.Join(dir, "bin")
			err = cluster.Build(context.Background(), built)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		return 1
	}
	return cluster.Leaks(m.Run())
}

// TestHash checks vectors of an existing control plane's function.
func TestHash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ mesh, name, zone, namespace, want string }{
		{"default", "mtp-1", "", "", "mtp-1-9v2z79f4557d687w"},
		{"default", "mtp-1", "zone-1", "", "mtp-1-6czzcxb6vc2w9f74"},
		{"default", "mtp-1", "zone-1", "kuma-demo", "mtp-1-fz47zxd2x86zfx87"},
	} {
		if got := hashed(tt.mesh, tt.name, tt.zone, tt.namespace); got != tt.want {
			t.Errorf("hashed(%q, %q, %q, %q) = %q, want %q", tt.mesh, tt.name, tt.zone, tt.namespace, got, tt.want)
		}
	}
}

// play holds real servers, the links between them, and the model.
type play struct {
	*cluster.Cluster
	t       *testing.T
	rng     *rand.Rand
	writer  *Writer
	world   World
	servers map[string]*cluster.Server
	links   map[string]*cluster.Link
	zones   []string
	faults  map[string]int // the number of each kind so far
	crowd   []*bystander
}

func newPlay(t *testing.T, seed uint64, zones ...string) *play {
	t.Helper()
	c, err := cluster.New(cluster.Config{Bin: programs(), Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p := &play{
		Cluster: c, t: t, rng: rand.New(rand.NewPCG(seed, 0)), world: World{}, zones: zones,
		servers: map[string]*cluster.Server{}, links: map[string]*cluster.Link{}, faults: map[string]int{},
	}
	p.writer = NewWriter(seed, append([]string{Global}, zones...)...)
	t.Cleanup(func() {
		if t.Failed() {
			var logs strings.Builder
			c.Tails(&logs, 8)
			t.Logf("run again with -seed %d; the ends of the logs:\n%s", seed, logs.String())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	global, err := c.StartGlobal(t.Context(), cluster.GlobalConfig{})
	p.must(err)
	p.servers[Global] = global
	for _, zone := range zones {
		link, err := cluster.NewLink(t.Context(), global.Address("kds"))
		p.must(err)
		t.Cleanup(func() { _ = link.Close() })
		p.links[zone] = link
		p.servers[zone], err = c.StartZone(t.Context(), cluster.ZoneConfig{Name: zone, Global: global, Link: link})
		p.must(err)
		p.must(p.servers[zone].WaitMesh(t.Context(), mesh))
	}
	return p
}

func (p *play) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestModel checks that random operations over four zones and the global, with faults in between, lead every server to
// the state that the model predicts. Many more zones, simulated, receive it all, too.
func TestModel(t *testing.T) {
	t.Parallel()
	p := newPlay(t, *seedFlag, "east", "west", "north", "south")
	p.gather(*crowdFlag)
	fault := p.rng.IntN(betweenFaults)
	for i := range *operations {
		p.operate()
		if fault--; fault <= 0 {
			p.fault()
			fault = 1 + p.rng.IntN(betweenFaults)
		}
		if (i+1)%between == 0 {
			p.agree()
		}
	}
	p.agree()
	t.Logf("seed %d: %d operations, %d resources at the end, faults %v", *seedFlag, *operations, len(p.world), p.faults)
	for _, kind := range []string{"kill", "restart", "cut", "freeze", "slow"} {
		if *operations >= 500 && p.faults[kind] == 0 {
			t.Errorf("no %s has happened", kind)
		}
	}
}

// operate makes one operation, and applies it to the model.
func (p *play) operate() {
	p.t.Helper()
	for _, s := range p.writer.Next(p.world) {
		p.must(p.request(p.t.Context(), s))
		p.world.Apply(s)
	}
}

func path(id ID) string {
	at := "/meshes/" + mesh + "/" + strings.ToLower(id.Type) + "s/" + id.Name
	if id.Namespace != "" {
		at += "?namespace=" + id.Namespace
	}
	return at
}

func (p *play) request(ctx context.Context, s Step) error {
	api := p.servers[s.ID.Home].API
	if s.Written == nil {
		return api.Delete(ctx, path(s.ID))
	}
	return api.Put(ctx, path(s.ID), Document(s.ID, *s.Written))
}

// fault breaks something. Links stay broken until the next fault or comparison. Servers restart at once.
func (p *play) fault() {
	p.t.Helper()
	zone := pick(p.rng, p.zones...)
	kind := pick(p.rng, "kill", "kill", "restart", "cut", "cut", "freeze", "slow")
	p.faults[kind]++
	switch kind {
	case "kill":
		p.killWhileWriting(pick(p.rng, append([]string{Global}, p.zones...)...))
	case "restart":
		server := p.servers[pick(p.rng, append([]string{Global}, p.zones...)...)]
		p.must(server.Stop(p.t.Context()))
		p.must(server.Start(p.t.Context()))
	case "cut":
		p.links[zone].Set(cluster.Weather{Cut: true})
		if pick(p.rng, true, false) {
			p.links[zone].Set(cluster.Weather{}) // connections are gone, new ones are accepted
		}
	case "freeze":
		p.links[zone].Set(cluster.Weather{Frozen: true})
	case "slow":
		p.links[zone].Set(cluster.Weather{Delay: 20 * time.Millisecond, BytesPerSecond: 125_000, Loss: 0.05})
	}
}

// killWhileWriting kills a server with a request under way. Afterwards the server has either the old or the new state,
// and nothing else.
func (p *play) killWhileWriting(at string) {
	p.t.Helper()
	server := p.servers[at]
	var s Step
	for s.ID.Home != at || s.ID.Type == "" {
		s = p.writer.Next(p.world)[0]
	}
	var g errgroup.Group
	g.Go(func() error { return p.request(p.t.Context(), s) })
	if p.rng.IntN(3) > 0 {
		time.Sleep(time.Duration(p.rng.IntN(3000)) * time.Microsecond)
	}
	server.Kill()
	err := g.Wait()
	if status := cluster.StatusOf(err); status != 0 {
		p.t.Fatal(err)
	}
	p.must(server.Start(p.t.Context()))
	var it cluster.Item
	switch err2 := server.API.Get(p.t.Context(), path(s.ID), &it); {
	case err == nil:
		p.world.Apply(s) // acknowledged: agree checks that it is there
	case cluster.StatusOf(err2) == 404 && s.Written == nil:
		delete(p.world, s.ID)
	case err2 == nil && s.Written != nil && valueOf(it) == s.Written.Value:
		p.world.Apply(s)
	}
}
