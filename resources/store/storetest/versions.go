package storetest

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources/store"
)

// testVersions checks that a copy keeps its version, and that any other change removes it.
func testVersions(t *testing.T, open Open) {
	s := open(t, store.ViewConfig{})
	copied := Resource(Key("copy"), 1, nil)
	copied.Version = "v1"
	Apply(t, s, Put(copied))
	version := func() string { return s.Snapshot().Get(Key("copy")).Version }
	if version() != "v1" {
		t.Errorf("stored with version %q", version())
	}
	newer := Resource(Key("copy"), 2, nil)
	newer.Version = "v2"
	Apply(t, s, Put(newer))
	if version() != "v2" {
		t.Errorf("replaced, it has version %q", version())
	}
	byHand := s.Snapshot().Get(Key("copy")).Clone()
	byHand.Labels["by"] = "hand"
	Apply(t, s, store.Batch{Ops: []store.Op{{Put: byHand}}})
	if version() != "" {
		t.Errorf("changed by hand, it still has version %q", version())
	}
}
