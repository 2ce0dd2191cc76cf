package accesslog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

const (
	strict  = "kri_mtp_default___strict_"
	inbound = "kri_dp_default_zone-1__backend_main"
)

var start = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

func shadowDenied(client string) Observation {
	return Observation{Inbound: inbound, Client: "spiffe://a/" + client, Method: "GET", PathPrefix: "/api",
		Policy: strict, Allowed: true, ShadowPolicy: strict}
}

func policy(t *testing.T, conf string) store.Snapshot {
	t.Helper()
	spec, err := resources.NewSpec(resources.TypeMeshTrafficPermission, []byte(`{"rules":[{"default":`+conf+`}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := store.NewMemory()
	r := &resources.Resource{Spec: spec, Key: resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
		Name: "strict"}}
	if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
		t.Fatal(err)
	}
	return s.Snapshot()
}

// TestReadiness goes through the life of a policy with shadow denials.
func TestReadiness(t *testing.T) {
	snap := policy(t, `{"allowWithShadowDeny":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/"}}]}`)
	changed := time.Now() // when the store took the policy
	day := 24 * time.Hour
	for _, c := range []struct {
		name      string
		capacity  int
		denials   []time.Duration // since the change
		now       time.Duration
		safe      bool
		wantInfix string
	}{
		{"nothing seen for long enough", 0, nil, 8 * day, true, "no would-deny for 7 d"},
		{"nothing seen yet", 0, nil, day, false, "watched for 24h"},
		{"somebody would be denied", 0, []time.Duration{day, 2 * day}, 8 * day, false, "2 would be denied"},
		{"the last is long ago", 0, []time.Duration{day}, 9 * day, true, "safe"},
		{"one was not kept", 1, []time.Duration{2 * day}, 8 * day, false, "for lack of room"},
	} {
		j := NewJournal(start, c.capacity)
		for _, at := range c.denials {
			j.Add(shadowDenied("one"), "", changed.Add(at))
		}
		if c.capacity > 0 {
			j.Add(Observation{Inbound: inbound, Allowed: true}, "", changed.Add(c.now))
		}
		got := reported(j, snap, reportQuery{now: changed.Add(c.now)})
		if len(got.Readiness) != 1 || got.Readiness[0].Safe != c.safe ||
			!strings.Contains(got.Readiness[0].Text, c.wantInfix) {
			t.Errorf("%s: %+v", c.name, got.Readiness)
		}
	}
	if got := reported(NewJournal(start, 0), policy(t, `{"allow":[]}`), reportQuery{}); len(got.Readiness) != 0 {
		t.Errorf("a policy without shadow denials: %+v", got.Readiness)
	}
}

// reported asks a journal as a zone's own API does.
func reported(j *Journal, snap store.Snapshot, q reportQuery) *api.ShadowReport {
	s := j.read(func(*Entry) bool { return false })
	return report(&observed{journal: j, policies: shadowPolicies(snap, q.mesh, &s)}, q)
}

func TestJournalIsBounded(t *testing.T) {
	j := NewJournal(start, 10)
	for i := range 1000 {
		j.Add(shadowDenied(fmt.Sprint(i)), "", start.Add(time.Duration(i)*time.Second))
		j.Add(shadowDenied("often"), "", start.Add(time.Duration(i)*time.Second))
	}
	s := j.read(func(*Entry) bool { return true })
	if len(s.entries) != 10 || s.dropped != 991 || s.lost(strict) != start.Add(990*time.Second) {
		t.Errorf("%d entries, %d dropped, the last at %s", len(s.entries), s.dropped, s.lost(strict))
	}
	if s.entries[0].Count != 1000 || !s.entries[0].First.Equal(start) {
		t.Errorf("what is seen all the time was not kept: %+v", s.entries[0])
	}
}

func TestSuggest(t *testing.T) {
	j := NewJournal(start, 0)
	add := func(o Observation) { j.Add(o, o.PathPrefix, start.Add(time.Hour)) }
	seen := func(client, method, path string) Observation {
		return Observation{Inbound: inbound, Client: "spiffe://a/" + client, Method: method, PathPrefix: path,
			Policy: "kri_mtp_default___p_", Allowed: true}
	}
	add(seen("one", "POST", "/api"))
	add(seen("one", "GET", "/api"))
	add(seen("one", "GET", "/"))
	add(seen("two", Other, "/api"))
	denied := seen("evil", "GET", "/admin")
	denied.Allowed = false
	add(denied)
	other := seen("else", "GET", "/api")
	other.Inbound = "kri_dp_default_zone-1__backend-2_main"
	add(other)
	j.Add(seen("long-ago", "GET", "/api"), "/api", start.Add(-time.Hour))
	spec, err := resources.NewSpec(resources.TypeDataplane, []byte(`{"networking":{"address":"127.0.0.1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	home := resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}
	dp := home.Labelled(&resources.Resource{Spec: spec, Key: resources.Key{Type: resources.TypeDataplane,
		Mesh: "default", Name: "backend"}})
	got, err := suggest(j, suggestQuery{dataplane: dp, since: start})
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ Spec json.RawMessage }
	if err := json.Unmarshal(got.Resources[0], &r); err != nil {
		t.Fatal(err)
	}
	const want = `{"targetRef":{"kind":"Dataplane","name":"backend","sectionName":"main"},"rules":[{"default":{"allow":[` +
		`{"spiffeId":{"type":"Exact","value":"spiffe://a/one"},"path":{"type":"Exact","value":"/"},"method":["GET"]},` +
		`{"spiffeId":{"type":"Exact","value":"spiffe://a/one"},"path":{"type":"Exact","value":"/api"},"method":["GET","POST"]}]}}]}`
	var a, b any
	if json.Unmarshal(r.Spec, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("got  %s\nwant %s", r.Spec, want)
	}
	if len(got.Resources) != 1 || got.Observed != 3 || len(got.Warnings) != 2 {
		t.Errorf("%d observed, warnings %q", got.Observed, got.Warnings)
	}
}

// What was denied is replayed against what is proposed, exactly or by prefix, and the result is reported.
func TestSuggestionsAreReplayed(t *testing.T) {
	j := NewJournal(start, 0)
	add := func(path, policy string, allowed bool, after time.Duration) {
		o := Observation{Inbound: inbound, Client: "spiffe://a/one", Method: "POST", PathPrefix: pathPrefix(path),
			Policy: policy, Allowed: allowed}
		j.Add(o, path, start.Add(after))
	}
	add("/orders", "p", true, time.Minute)
	add("/orders/1", "default", false, time.Minute)
	add("/gone", "p", true, time.Minute)
	add("/gone", "default", false, time.Hour)
	for i := range maxPathsOfEntry + 5 {
		add(fmt.Sprintf("/many/%d", i), "p", true, time.Minute)
	}
	spec, err := resources.NewSpec(resources.TypeDataplane, []byte(`{"networking":{"address":"127.0.0.1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	home := resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}
	dp := home.Labelled(&resources.Resource{Spec: spec, Key: resources.Key{Type: resources.TypeDataplane,
		Mesh: "default", Name: "backend"}})
	for _, c := range []struct {
		prefixes bool
		observed uint64
		want     []string
	}{
		{false, 1 + maxPathsOfEntry, []string{
			"not allowed by it, because more paths were seen than are kept (prefixes would allow it, and everything below): 5 of spiffe://a/one (POST somewhere under /many)",
			"not allowed by it, because they were denied later: 1 of spiffe://a/one (POST /gone)",
			"not allowed by it, because default denied them: 1 of spiffe://a/one (POST /gone)",
			"not allowed by it, because default denied them: 1 of spiffe://a/one (POST /orders/1)",
		}},
		{true, 2 + 5 + maxPathsOfEntry, []string{
			"ALLOWED by it, though default denied them: 1 of spiffe://a/one (POST /gone)",
			"ALLOWED by it, though default denied them: 1 of spiffe://a/one (POST /orders/1)",
			"paths are allowed by their first segments: everything below is allowed too, seen or not",
		}},
	} {
		got, err := suggest(j, suggestQuery{dataplane: dp, since: start, prefixes: c.prefixes})
		if err != nil {
			t.Fatal(err)
		}
		if got.Observed != c.observed || !slices.Equal(got.Warnings, c.want) {
			t.Errorf("prefixes %t: %d observed, warnings:\n%s", c.prefixes, got.Observed, strings.Join(got.Warnings, "\n"))
		}
	}
}

// Paths take bounded room, which is given back.
func TestPathsAreBounded(t *testing.T) {
	j := NewJournal(start, 100)
	for i := range 300 {
		for path := range 2 * maxPathsOfEntry {
			o := Observation{Inbound: inbound, Client: fmt.Sprint(i), Method: "GET", PathPrefix: "/x"}
			j.Add(o, fmt.Sprintf("/x/%d", path), start)
		}
	}
	if j.paths != 100*maxPathsOfEntry || j.pathsOf[proxyOf(inbound)] != j.paths {
		t.Errorf("%d paths are kept for 100 entries, %v", j.paths, j.pathsOf)
	}
}

func TestPathPrefix(t *testing.T) {
	for path, want := range map[string]string{
		"/": "/", "": Other, "*": Other, "/a": "/a", "/a/b/c": "/a", "/a?x=/y": "/a", "/?x": "/",
		"/" + strings.Repeat("a", 200): Other,
	} {
		if got := pathPrefix(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
