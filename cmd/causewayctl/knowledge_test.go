package main

import (
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/tracker"
)

// TestKnowledgeNamesWhatAZoneLacks checks that a zone that is behind, or rejected something, is not shown as up to
// date.
func TestKnowledgeNamesWhatAZoneLacks(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lacking := []tracker.TypeSync{
		{Type: "MeshTrafficPermission", Direction: "toZone", LagSeconds: 6},
		{Type: "Dataplane", Direction: "toGlobal", LagSeconds: 6},
		{Type: "MeshTimeout", Direction: "toZone", Refused: []tracker.RefusedResource{{KRI: "kri_mt_default___slow_", By: "peer"}}},
	}
	const says = "; its own Dataplane may be newer than what is shown; its MeshTrafficPermission may be older than what is shown; it did not accept kri_mt_default___slow_"
	for name, c := range map[string]struct {
		session syncSession
		want    string
	}{
		"in sync": {syncSession{Connected: true, Since: at, Reported: at,
			Types: []tracker.TypeSync{{Type: "Mesh", Direction: "toZone"}}}, "it last reported its proxies at 2026-01-02T03:04:05Z"},
		"behind": {syncSession{Connected: true, Since: at, Reported: at, Types: lacking}, "at 2026-01-02T03:04:05Z" + says},
		"offline": {syncSession{Since: at, Types: lacking},
			"offline since 2026-01-02T03:04:05Z: its own resources are as they were then" + says},
		"not seen": {syncSession{Started: at}, "and whether it has everything else that is shown is unknown"},
	} {
		if got := knowledgeFrom("zone-1", &c.session).String(); !strings.HasSuffix(got, c.want) {
			t.Errorf("%s: got %q, want it to end with %q", name, got, c.want)
		}
	}
}
