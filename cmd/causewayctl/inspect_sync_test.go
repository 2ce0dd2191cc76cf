package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/tracker"
)

func TestSessionsText(t *testing.T) {
	t.Parallel()
	const answers = `[
		{"zone":"zone-1","connected":true,"types":[
			{"type":"Mesh","direction":"toZone"},
			{"type":"MeshTimeout","direction":"toZone","sent":7,"acked":6,"lagRevisions":2,"lagSeconds":1.5,
				"refused":[{"kri":"kri_mt_a","name":"a","reason":"too long"},{"name":"b","reason":"odd","by":"self"}]},
			{"type":"Dataplane","direction":"toGlobal","sent":3,"acked":3,"held":{"count":40,"names":["a","b","c","d"]}}]},
		{"zone":"zone-2","connected":false,"types":[]},
		{"zone":"zone-3","connected":false,"since":"2026-01-01T00:00:00Z","types":[
			{"type":"Dataplane","direction":"toGlobal","sent":3,"acked":3,"lagUnknown":true}]},
		{"zone":"zone-4","connected":true,"since":"2026-01-01T00:00:00Z","reported":"2026-01-01T00:00:01Z","types":[
			{"type":"Dataplane","direction":"toGlobal","sent":3,"acked":3,"lagUnknown":true},
			{"type":"MeshTrust","direction":"toGlobal","sent":3,"acked":3,"lagUnknown":true,"refused":[{"name":"c","reason":"old","by":"self"}]},
			{"type":"MeshService","direction":"toGlobal","sent":3,"acked":3,"lagUnknown":true}]}]`
	const want = `ZONE     STATUS   TYPE          DIRECTION   SENT   ACKNOWLEDGED   REVISIONS BEHIND   LAG    REFUSED   HELD
zone-1   online   MeshTimeout   toZone      7      6              2                  1.5s   2
zone-1   online   Dataplane     toGlobal    3      3              0                         0   40
zone-2   not seen
zone-3   offline   Dataplane   toGlobal   3   3   unknown   unknown   0
zone-4   online    2 types     toGlobal           unknown   unknown
zone-4   online    MeshTrust   toGlobal   3   3   unknown   unknown   1

zone-1 toZone: the peer refused kri_mt_a: too long
zone-1 toZone: this server refused MeshTimeout b: odd
  what to do:     change or delete them where they were written: the sender offers them again when they change
zone-1 toGlobal: the removal of 40 Dataplane is held (a, b, c and 1 more)
  what to do:     if it is intended: causewayctl zone accept-deletes zone-1 --type Dataplane; if not, write them again where they came from
zone-4 toGlobal: this server refused MeshTrust c: old
  what to do:     change or delete them where they were written: the sender offers them again when they change
`
	var sessions []*syncSession
	if err := json.Unmarshal([]byte(answers), &sessions); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&cli{}).printSessions(&out, sessions, false, false); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestSessionSummary checks that what a zone has not reported is not shown as empty.
func TestSessionSummary(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, row := range map[string]struct {
		session syncSession
		want    string
	}{
		"it has told":     {syncSession{Connected: true, Since: at, Reported: at}, "0 0s 0 0 known"},
		"it has not":      {syncSession{Connected: true, Since: at}, "0 0s 0 0 or more unknown"},
		"another store":   {syncSession{Connected: true, Since: at, Reported: at, NewStore: &tracker.NewStore{}}, "0 0s 0 0 new"},
		"it was not seen": {syncSession{}, "unknown unknown unknown unknown unknown"},
	} {
		if got := strings.Join(row.session.summary(), " "); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}
