package accesslog

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestRecords: what is made of a zone's Record is what the zone makes of its journal.
func TestRecords(t *testing.T) {
	t.Parallel()
	j := NewJournal(start, 0)
	for i, o := range []Observation{
		{Inbound: inbound, Client: "spiffe://a/one", Method: "GET", PathPrefix: "/orders", Policy: "default"},
		{Inbound: inbound, Client: "spiffe://a/two", Method: "POST", PathPrefix: "/orders", Policy: strict},
		{Inbound: inbound, Client: "spiffe://a/one", Method: "GET", PathPrefix: "/orders", Policy: strict, Allowed: true},
		{Inbound: "kri_dp_default_zone-1_shop_cart_db", Client: "spiffe://a/two", Policy: "default"},
		{Inbound: "kri_dp_other_zone-1__backend_main", Client: "spiffe://a/two", Method: "GET", PathPrefix: "/", Policy: "default"},
		shadowDenied("spiffe://a/three"),
	} {
		for _, path := range []string{"/orders/1", "/orders/2", strings.Repeat("x", maxPath+1)} {
			j.Add(o, path, start.Add(time.Duration(i)*time.Minute))
		}
	}
	snap := policy(t, `{"allowWithShadowDeny":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/"}}]}`)
	config := &Config{Store: fixed{snap: snap}, Journal: j, Collecting: true}
	passed := func(of Selection) *Journal {
		t.Helper()
		body, err := config.AppendRecord(nil, of)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ReadRecord(body, "zone-1", of)
		if err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		return r.journal()
	}
	for _, mesh := range []string{"", "default", "other", "nowhere"} {
		q := denialQuery{mesh: mesh, size: 100}
		same(t, "denials of mesh "+mesh, denials(passed(Selection{Kind: Denied, Mesh: mesh}), q), denials(j, q))
		by := reportQuery{mesh: mesh, now: start.Add(time.Hour)}
		body, err := config.AppendRecord(nil, Selection{Kind: Shadowed, Mesh: mesh})
		if err != nil {
			t.Fatal(err)
		}
		r, err := ReadRecord(body, "zone-1", Selection{Kind: Shadowed, Mesh: mesh})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "shadow denials of mesh "+mesh, report(&observed{journal: r.journal(), policies: r.Policies}, by), reported(j, snap, by))
	}
	same(t, "pairs", passed(Selection{}).Pairs("", ""), j.Pairs("", ""))
	same(t, "pairs of one path", passed(Selection{}).Pairs("GET", "/orders/1"), j.Pairs("GET", "/orders/1"))
	dp := &resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "backend"},
		Labels: map[string]string{resources.LabelZone: "zone-1", resources.LabelOrigin: "zone", resources.LabelDisplayName: "backend"}}
	q := suggestQuery{dataplane: dp}
	here, err := suggest(j, q)
	if err != nil {
		t.Fatal(err)
	}
	there, err := suggest(passed(Selection{Mesh: "default", Dataplane: resources.KRIOf(dp)}), q)
	if err != nil || here.Observed == 0 {
		t.Fatal(err, here)
	}
	same(t, "suggestion", there, here)
	q.byLabels = true
	if there, err = suggest(j, q); err != nil || !strings.Contains(string(there.Resources[0]), `"kuma.io/zone":"zone-1"`) ||
		strings.Contains(string(there.Resources[0]), `"name":"backend"`) {
		t.Errorf("%v: the permission does not select by the zone: %s", err, there.Resources)
	}
}

// fixed is a store of which only its content is asked.
type fixed struct {
	store.Reader
	snap store.Snapshot
}

func (f fixed) Snapshot() store.Snapshot { return f.snap }

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		a, _ := json.MarshalIndent(got, "", " ")
		b, _ := json.MarshalIndent(want, "", " ")
		t.Errorf("%s: got %s\nwant %s", what, a, b)
	}
}

// TestRecordsAreBounded: a full journal of long texts gives a Record that a global accepts, of the most recent entries;
// what it has no room for counts as dropped, and a policy of which a shadow denial is left out is not called safe.
func TestRecordsAreBounded(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]int{"long texts": 300, "short texts": 1} {
		j := NewJournal(start, 0)
		for i := range DefaultCapacity {
			o := Observation{Inbound: inbound, Client: fmt.Sprintf("spiffe://%s/%d", strings.Repeat("a", long), i), Method: "GET",
				PathPrefix: "/", Policy: "default", ShadowPolicy: strict}
			for path := range 4 {
				j.Add(o, fmt.Sprintf("/%d%s", path, strings.Repeat("b", long/2)), start.Add(time.Duration(i)*time.Second))
			}
		}
		snap := policy(t, `{"allowWithShadowDeny":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/"}}]}`)
		body, err := (&Config{Store: fixed{snap: snap}, Journal: j}).AppendRecord(nil, Selection{Kind: Shadowed})
		if err != nil || len(body) > maxRecord {
			t.Fatalf("%s: %v, %d bytes", name, err, len(body))
		}
		r, err := ReadRecord(body, "zone-1", Selection{Kind: Shadowed})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		kept := len(r.Entries)
		if kept < 1000 || kept == DefaultCapacity || r.Dropped != uint64(4*(DefaultCapacity-kept)) {
			t.Errorf("%s: %d entries, %d requests dropped", name, kept, r.Dropped)
		}
		if last := start.Add((DefaultCapacity - 1) * time.Second); !r.Entries[0].Last.Equal(last) {
			t.Errorf("%s: the first is of %s, want the most recent of %s", name, r.Entries[0].Last, last)
		}
		if want := start.Add(time.Duration(DefaultCapacity-kept-1) * time.Second); len(r.Policies) != 1 || !r.Policies[0].Lost.Equal(want) {
			t.Errorf("%s: policies %+v, want lost at %s", name, r.Policies, want)
		}
	}
}

// TestRecordsOfManyPolicies: a full journal of denials by many policies gives a Record, in which each policy of which a
// denial is left out says so.
func TestRecordsOfManyPolicies(t *testing.T) {
	t.Parallel()
	const many = 100
	s := store.NewMemory()
	kris := make([]string, many)
	spec, err := resources.NewSpec(resources.TypeMeshTrafficPermission,
		[]byte(`{"rules":[{"default":{"allowWithShadowDeny":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/"}}]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for i := range kris {
		r := &resources.Resource{Spec: spec, Key: resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
			Name: fmt.Sprintf("strict-%03d", i)}}
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
		kris[i] = resources.KRIOf(r).String()
	}
	j := NewJournal(start, 0)
	for i := range DefaultCapacity {
		j.Add(Observation{Inbound: inbound, Client: fmt.Sprintf("spiffe://a/%s/%d", strings.Repeat("a", 300), i), Method: "GET",
			PathPrefix: "/", Policy: "default", ShadowPolicy: kris[i%many]}, "/", start.Add(time.Duration(i)*time.Second+1))
	}
	body, err := (&Config{Store: s, Journal: j}).AppendRecord(nil, Selection{Kind: Shadowed})
	if err != nil || len(body) > maxRecord {
		t.Fatalf("%v, %d bytes", err, len(body))
	}
	r, err := ReadRecord(body, "zone-1", Selection{Kind: Shadowed})
	if err != nil || len(r.Policies) != many || len(r.Entries) < 1000 {
		t.Fatalf("%v: %d policies, %d entries", err, len(r.Policies), len(r.Entries))
	}
	for _, p := range r.Policies {
		if p.Lost.IsZero() {
			t.Errorf("%s lost nothing", p.KRI)
		}
	}
}

// TestRecordsOfLiars: a zone is believed what it says of its own Dataplanes only, and nothing is decoded that is larger
// than a Record may be.
func TestRecordsOfLiars(t *testing.T) {
	t.Parallel()
	const one = `{"inbound":"kri_dp_default_zone-1__backend_main","client":"c","policy":"default","count":1}`
	denied := Selection{Kind: Denied, Mesh: "default"}
	for name, tt := range map[string]struct {
		body string
		of   Selection
		want string
	}{
		"itself":                 {`{"entries":[` + one + `]}`, denied, ""},
		"not JSON":               {`<html>`, denied, "invalid character"},
		"of another zone":        {strings.Replace(`{"entries":[`+one+`]}`, "zone-1", "zone-2", 1), denied, "not of a Dataplane of zone zone-1"},
		"of another type":        {strings.Replace(`{"entries":[`+one+`]}`, "kri_dp", "kri_msvc", 1), denied, "not of a Dataplane of zone zone-1"},
		"of another mesh":        {strings.Replace(`{"entries":[`+one+`]}`, "default", "other", 1), denied, "not asked for"},
		"allowed":                {strings.Replace(`{"entries":[`+one+`]}`, `"count"`, `"allowed":true,"count"`, 1), denied, "not asked for"},
		"of another Dataplane":   {`{"entries":[` + one + `]}`, Selection{Mesh: "default", Dataplane: resources.KRI{Short: "dp", Mesh: "default", Zone: "zone-1", Name: "other"}}, "not asked for"},
		"a novel":                {strings.Replace(`{"entries":[`+one+`]}`, `"c"`, `"`+strings.Repeat("c", maxText+1)+`"`, 1), denied, "longer than"},
		"a long path":            {strings.Replace(`{"entries":[`+one+`]}`, `"count"`, `"method":"GET","paths":[{"path":"`+strings.Repeat("c", maxPath+1)+`"}],"count"`, 1), denied, "longer than"},
		"many paths":             {strings.Replace(`{"entries":[`+one+`]}`, `"count"`, `"method":"GET","paths":[`+strings.Repeat("{},", maxPathsOfEntry)+`{}],"count"`, 1), denied, "more than 32 paths"},
		"many":                   {`{"entries":[` + strings.Repeat("{},", maxRecordValues/2) + `{}]}`, denied, "more than 200000 values"},
		"large":                  {`{"entries":[]}` + strings.Repeat(" ", maxRecord), denied, "bytes, the maximum is"},
		"deep":                   {strings.Repeat(`{"entries":`, 100), denied, "nest deeper"},
		"a policy of its making": {`{"policies":[{"kri":"kri_mt_default___x_"}]}`, denied, "policies[0]"},
	} {
		_, err := ReadRecord([]byte(tt.body), "zone-1", tt.of)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (!errors.Is(err, ErrRecord) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
	twice, err := ReadRecord([]byte(`{"entries":[`+one+`,`+one+`]}`), "zone-1", denied)
	if err != nil || len(denials(twice.journal(), denialQuery{size: 10}).Items) != 1 {
		t.Errorf("%v: an entry that came twice is not one", err)
	}
}
