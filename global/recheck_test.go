package global

import (
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestPassesAreAskedAfterWhatConcernsThem checks what makes a tick ask all passes again: anything stored of credentials and
// zones, a connection that shows another certificate, and commits that the changelog no longer has. Policies do not, and
// nothing costs nothing.
func TestPassesAreAskedAfterWhatConcernsThem(t *testing.T) {
	a, _ := watched(t)
	s := a.store.(store.Store)
	put := func(key resources.Key, spec string) func() {
		return func() {
			made, err := resources.NewSpec(key.Type, []byte(spec))
			if err != nil {
				t.Fatal(err)
			}
			r := &resources.Resource{Key: key, Labels: map[string]string{}, Spec: made}
			if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	policy := func(spec string) func() {
		return put(resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "one"}, spec)
	}
	all := &asked{}
	for _, step := range []struct {
		what string
		do   func()
		asks bool
	}{
		{"the start", func() {}, true},
		{"nothing", func() {}, false},
		{"a policy", policy(`{}`), false},
		{"a zone", put(resources.Key{Type: resources.TypeZone, Name: "zone-1"}, `{"enabled":false}`), true},
		{"nothing after it", func() {}, false},
		{"a record", func() {
			if err := a.withdrawn("zone-1"); err != nil {
				t.Fatal(err)
			}
			policy(`{"to":[]}`)()
		}, true},
		{"a renewal", func() { a.rechecks.shown.Add(1) }, true},
		{"nothing after that", func() {}, false},
		{"more than the changelog has", func() {
			for range 20_000 {
				policy(`{}`)()
				policy(`{"to":[]}`)()
				if _, kept := s.Changes(a.rechecks.seen); !kept {
					return
				}
			}
			t.Fatal("the changelog has everything")
		}, true},
	} {
		before := all.all
		step.do()
		a.rechecks.tick(all)
		if asked := all.all > before; asked != step.asks {
			t.Errorf("after %s: all passes are asked: %t, want %t", step.what, asked, step.asks)
		}
	}
	if n := testing.AllocsPerRun(100, func() { a.rechecks.tick(all) }); n != 0 {
		t.Errorf("a tick after which nothing changed allocates %v times", n)
	}
}

// lasting is a pass that holds until its time; zero is for ever.
type lasting time.Time

func (lasting) Err() error         { return nil }
func (p lasting) Until() time.Time { return time.Time(p) }

// TestBothPassesHoldUntilTheFirstEnds checks which of two times decides when a zone that showed a certificate and a token is
// asked again.
func TestBothPassesHoldUntilTheFirstEnds(t *testing.T) {
	t.Parallel()
	never, soon, later := time.Time{}, time.Now(), time.Now().Add(time.Hour)
	for _, row := range [][3]time.Time{{never, never, never}, {soon, never, soon}, {never, soon, soon}, {soon, later, soon},
		{later, soon, soon}} {
		if got := (bothPasses{lasting(row[0]), lasting(row[1])}).Until(); !got.Equal(row[2]) {
			t.Errorf("until %s and %s: asked at %s, want %s", row[0], row[1], got, row[2])
		}
	}
}
