package model

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var (
	frozenFlag = flag.Duration("frozen", 3*time.Second,
		"how long TestWeather drops packets; sessions notice after half a minute")
	pastFlag = flag.Int("past", 20_000,
		"changes that TestWeather makes on each side of a cut link; a server remembers some tens of thousands")
)

// TestWeather checks that what is written on both sides of bad links reaches the other side: over the bad link if
// anything passes, otherwise after its repair.
func TestWeather(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		weather    cluster.Weather
		operations int
		during     time.Duration // the least time that the weather lasts after the operations
		passes     bool
	}{
		{"delayed by 200 ms", cluster.Weather{Delay: 200 * time.Millisecond}, 60, 0, true},
		{"1 Mbit a second", cluster.Weather{BytesPerSecond: 125_000}, 150, 0, true},
		{"5 percent lost", cluster.Weather{Loss: 0.05}, 100, 0, true},
		{"all of it", cluster.Weather{Delay: 100 * time.Millisecond, BytesPerSecond: 125_000, Loss: 0.05}, 60, 0, true},
		{"frozen", cluster.Weather{Frozen: true}, 60, *frozenFlag, false},
		{"frozen towards the global", cluster.Weather{FrozenUp: true}, 60, *frozenFlag, false},
		{"frozen towards the zones", cluster.Weather{FrozenDown: true}, 60, *frozenFlag, false},
		{"cut", cluster.Weather{Cut: true}, 60, time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlay(t, *seedFlag, "east", "west")
			for range 40 {
				p.operate()
			}
			p.agree()
			for _, l := range p.links {
				l.Set(tt.weather)
			}
			for range tt.operations {
				p.operate()
			}
			start := time.Now()
			if tt.passes {
				p.agreeAsItIs()
			}
			time.Sleep(tt.during - time.Since(start))
			if !tt.passes {
				p.agree()
			}
			t.Logf("%d operations, in agreement %s after the last", tt.operations, time.Since(start).Round(time.Millisecond))
		})
	}
}

// TestCutPastTheWindow cuts a link for so many changes that neither side still has them in its changelog.
func TestCutPastTheWindow(t *testing.T) {
	t.Parallel()
	p := newPlay(t, *seedFlag, "east", "west")
	for range 60 {
		p.operate()
	}
	p.agree()
	p.links["east"].Set(cluster.Weather{Cut: true})
	p.flood(ID{Home: "east", Type: Service.Type(), Namespace: "flood"}, Service)
	p.flood(ID{Home: Global, Type: System.Type()}, System)
	for range 60 {
		p.operate()
	}
	start := time.Now()
	p.agree()
	t.Logf("%d changes on each side, in agreement %s after the link was mended", *pastFlag,
		time.Since(start).Round(time.Millisecond))
}

// flood writes the same resources repeatedly.
func (p *play) flood(id ID, kind Kind) {
	p.t.Helper()
	const batch = 500
	for done := 0; done < *pastFlag; done += batch {
		var documents bytes.Buffer
		for i := range batch {
			id.Name = fmt.Sprintf("flood-%d", i)
			written := p.writer.written(kind)
			written.Stays = false
			raw, err := json.Marshal(Document(id, written))
			p.must(err)
			fmt.Fprintf(&documents, "---\n%s\n", raw)
			p.world.Apply(Step{ID: id, Written: &written})
		}
		_, err := p.CTL(p.t.Context(), p.servers[id.Home], &documents, "apply", "-f", "-")
		p.must(err)
	}
}
