package lineage

import "testing"

// TestLineageKnowsWhatWasSeen checks that a rolled-back store does not continue what was seen of it, however far it has
// come since.
func TestLineageKnowsWhatWasSeen(t *testing.T) {
	t.Parallel()
	starts := []start{{"a", 10}, {"b", 100}, {"c", 200}}
	for name, tt := range map[string]struct {
		seen     Seen
		revision uint64
		alone    bool // a single server
		shared   bool // replicas
	}{
		"nothing":                              {Seen{}, 5, true, true},
		"all of it":                            {Seen{"c", 200, 300}, 300, true, true},
		"less":                                 {Seen{"c", 200, 250}, 300, true, true},
		"more than it has":                     {Seen{"c", 200, 301}, 300, false, false},
		"a start before":                       {Seen{"b", 100, 199}, 300, true, true},
		"as much as the next start made of it": {Seen{"b", 100, 200}, 300, false, true}, // replicas wrote concurrently
		"more than it had, known when the word was last": {Seen{"b", 200, 200}, 300, false, false},
		"a start that it does not have":                  {Seen{"x", 150, 150}, 300, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			for shared, want := range map[bool]bool{false: tt.alone, true: tt.shared} {
				l := &history{Starts: starts, Shared: shared}
				if got := l.continues(tt.seen, tt.revision); got != want {
					t.Errorf("shared %v: %v, want %v", shared, got, want)
				}
			}
			if back := ParseSeen(tt.seen.String()); back != tt.seen {
				t.Errorf("%+v came back as %+v", tt.seen, back)
			}
		})
	}
}

// TestLineageIsBounded checks that a lineage holds only the last starts, and reads back what it encodes.
func TestLineageIsBounded(t *testing.T) {
	t.Parallel()
	l := &history{Store: "s"}
	for i := range uint64(mostStarts + 10) {
		l.begin()
		raw, err := l.encode()
		if err == nil {
			l, err = parse(raw, i+1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if first, n := l.Starts[0].Revision, len(l.Starts); n != mostStarts || first != 11 {
		t.Errorf("%d starts, the first at %d", n, first)
	}
}
