package xds

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// described writes localities as text: priorities by " | ", localities of one by " + ", each WEIGHT:ADDRESSES.
func described(priorities [][]locality) string {
	var out []string
	for _, all := range priorities {
		var of []string
		for _, l := range all {
			var addresses []string
			for _, e := range l.endpoints {
				addresses = append(addresses, e.address)
			}
			slices.Sort(addresses)
			of = append(of, fmt.Sprintf("%d:%s", l.weight, strings.Join(addresses, ",")))
		}
		out = append(out, strings.Join(of, " + "))
	}
	return strings.Join(out, " | ")
}

// TestLocalities holds the order of endpoints for each form of a localityAwareness, for a caller in zone-1 with the
// label node: n1 and an inbound of rack: r1.
func TestLocalities(t *testing.T) {
	t.Parallel()
	caller := &matching.Proxy{
		Zone: "zone-1", Labels: map[string]string{"node": "n1"},
		Inbounds: []matching.InboundPort{{Tags: map[string]string{"rack": "r1"}}},
	}
	at := func(address, node, rack string) behind {
		return behind{endpoint: endpoint{address, 80}, proxy: &matching.Proxy{
			Labels: map[string]string{"node": node}, Inbounds: []matching.InboundPort{{Tags: map[string]string{"rack": rack}}},
		}}
	}
	for _, tt := range []struct{ name, conf, want string }{
		{"nothing", `{}`, "0:a,b,c | 0:x,y"},
		{"enabled", `{"disabled":false}`, "0:a,b,c | 0:x,y"},
		{"disabled", `{"disabled":true}`, "0:a,b,c,x,y"},
		{"own zone only", `{"localZone":{}}`, "0:a,b,c"},
		{"disabled counts for nothing beside others", `{"disabled":true,"localZone":{}}`, "0:a,b,c"},
		{"affinity", `{"localZone":{"affinityTags":[{"key":"node"},{"key":"rack"}]}}`, "90:a + 9:b + 1:c"},
		{"weights", `{"localZone":{"affinityTags":[{"key":"node","weight":9000},{"key":"rack","weight":9}]}}`,
			"9000:a + 9:b + 1:c"},
		{"a tag that the caller lacks", `{"localZone":{"affinityTags":[{"key":"shelf"},{"key":"rack"}]}}`, "9:a,b + 1:c"},
		{"weights that only a peer has", `{"localZone":{"affinityTags":[{"key":"node","weight":4294967295},{"key":"rack","weight":0}]}}`, "500000000:a + 1:b + 1:c"},
		{"none", `{"crossZone":{}}`, "0:a,b,c"},
		{"any", `{"crossZone":{"failover":[{"to":{"type":"Any"}}]}}`, "0:a,b,c | 0:x,y"},
		{"in order", `{"crossZone":{"failover":[{"to":{"type":"Only","zones":["zone-3"]}},{"to":{"type":"Any"}}]}}`,
			"0:a,b,c | 0:y | 0:x"},
		{"except", `{"crossZone":{"failover":[{"to":{"type":"AnyExcept","zones":["zone-3"]}}]}}`, "0:a,b,c | 0:x"},
		{"none ends", `{"crossZone":{"failover":[{"to":{"type":"Only","zones":["zone-3"]}},{"to":{"type":"None"}},{"to":{"type":"Any"}}]}}`, "0:a,b,c | 0:y"},
		{"from others", `{"crossZone":{"failover":[{"from":{"zones":["zone-2"]},"to":{"type":"Any"}},{"from":{"zones":["zone-1"]},"to":{"type":"Only","zones":["zone-2"]}}]}}`, "0:a,b,c | 0:x"},
		{"both", `{"localZone":{"affinityTags":[{"key":"node"}]},"crossZone":{"failover":[{"to":{"type":"Only","zones":["zone-2"]}}]}}`, "9:a + 1:b,c | 1:x"},
	} {
		here := []behind{at("a", "n1", "r1"), at("b", "n2", "r1"), at("c", "n3", "r3")}
		away := map[string][]behind{"zone-2": {{endpoint: endpoint{"x", 1}}}, "zone-3": {{endpoint: endpoint{"y", 1}}}}
		p := preferenceOf(decodedLocality(t, tt.conf), caller, true)
		if got := described(p.sort(here, away)); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
	}
	if p := preferenceOf(decodedLocality(t, `{"localZone":{},"crossZone":{}}`), caller, false); p != nil {
		t.Errorf("a MeshService, which has one zone: %+v", p)
	}
}

// TestLocalitiesKeepAll: whatever the conf, each endpoint stands in at most one locality, endpoints of the own zone are all
// there and come first, and where one locality has a weight all have. The addresses of other zones have equal shares, and
// one that ingresses share stands alone.
func TestLocalitiesKeepAll(t *testing.T) {
	t.Parallel()
	zones := []string{"zone-1", "zone-2", "zone-3", "zone-4"}
	types := []string{resources.FailoverAny, resources.FailoverNone, resources.FailoverOnly, resources.FailoverAnyExcept}
	rapid.Check(t, func(t *rapid.T) {
		of := func(label string) *matching.Proxy {
			return &matching.Proxy{Zone: "zone-1", Labels: map[string]string{
				"node": rapid.SampledFrom([]string{"1", "2"}).Draw(t, label),
				"rack": rapid.SampledFrom([]string{"1", "2"}).Draw(t, label),
			}}
		}
		l := &resources.LocalityAwareness{}
		if rapid.Bool().Draw(t, "affine") {
			l.LocalZone = &resources.LocalZone{}
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"node", "rack", "shelf"}), 0, 3,
				rapid.ID).Draw(t, "keys") {
				l.LocalZone.AffinityTags = append(l.LocalZone.AffinityTags, resources.AffinityTag{Key: key})
			}
		}
		if rapid.Bool().Draw(t, "cross") {
			l.CrossZone = &resources.CrossZone{}
			for range rapid.IntRange(0, 3).Draw(t, "rules") {
				var f resources.ZoneFailover
				f.To.Type = rapid.SampledFrom(types).Draw(t, "type")
				f.To.Zones = rapid.SliceOfDistinct(rapid.SampledFrom(zones), rapid.ID).Draw(t, "zones")
				l.CrossZone.Failover = append(l.CrossZone.Failover, f)
			}
		}
		var here []behind
		for i := range rapid.IntRange(0, 4).Draw(t, "here") {
			here = append(here, behind{endpoint: endpoint{fmt.Sprint("here-", i), 1}, proxy: of("endpoint")})
		}
		away := map[string][]behind{}
		for _, zone := range rapid.SliceOfDistinct(rapid.SampledFrom(zones[1:]), rapid.ID).Draw(t, "away") {
			for i := range rapid.IntRange(1, 4).Draw(t, "ingresses") {
				at := endpoint{zone, rapid.Uint32Range(1, 2).Draw(t, "port")}
				away[zone] = append(away[zone], behind{endpoint: at, ingress: fmt.Sprint(zone, i)})
			}
		}
		ingresses := maps.Clone(away)
		allowed := allowedZones(l, slices.Collect(maps.Keys(away)))

		priorities := preferenceOf(l, of("caller"), true).sort(here, away)
		seen, weights, all := map[string]int{}, 0, 0
		for i, localities := range priorities {
			for _, one := range localities {
				all, weights = all+1, weights+int(min(one.weight, 1))
				addresses, shared := map[endpoint]int{}, 0
				for _, e := range one.endpoints {
					addresses[e.endpoint]++
					shared = max(shared, addresses[e.endpoint])
				}
				if shared > 1 != (one.name != "" && one.endpoints[0].ingress != "") || shared > 1 && len(addresses) > 1 {
					t.Fatalf("locality %q has %v", one.name, one.endpoints)
				}
				if len(localities) > 1 && one.weight > 0 && one.endpoints[0].ingress != "" && int(one.weight) != len(addresses) {
					t.Fatalf("%d addresses weigh %d", len(addresses), one.weight)
				}
				for e := range addresses {
					seen[e.String()]++
					if strings.HasPrefix(e.address, "here-") != (i == 0 && len(here) > 0) {
						t.Fatalf("%s has priority %d", e.address, i)
					}
				}
			}
		}
		if weights != 0 && weights != all {
			t.Fatalf("%d of %d localities have weights", weights, all)
		}
		want := map[string]int{}
		for i := range here {
			want[here[i].String()] = 1
		}
		for _, zone := range allowed {
			for _, e := range ingresses[zone] {
				want[e.String()] = 1
			}
		}
		if !maps.Equal(seen, want) {
			t.Fatalf("endpoints %v, want %v", seen, want)
		}
	})
}

// allowedZones is the reference: which other zones a conf lets in at all, read rule by rule.
func allowedZones(l *resources.LocalityAwareness, away []string) (out []string) {
	if l.CrossZone == nil {
		if l.LocalZone == nil {
			return away
		}
		return nil
	}
	for _, zone := range away {
	rules:
		for _, r := range l.CrossZone.Failover {
			listed := slices.Contains(r.To.Zones, zone)
			switch r.To.Type {
			case resources.FailoverNone:
				break rules
			case resources.FailoverAny:
				out = append(out, zone)
				break rules
			case resources.FailoverOnly:
				if listed {
					out = append(out, zone)
					break rules
				}
			case resources.FailoverAnyExcept:
				if !listed {
					out = append(out, zone)
					break rules
				}
			}
		}
	}
	return out
}

// TestSharedAddressesFollowTheirIngresses: the locality of an address that ingresses share has another name for each set of
// them, by which Envoy takes it for another host. Addresses of one ingress have none, whoever it is.
func TestSharedAddressesFollowTheirIngresses(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for _, of := range []string{"a", "b", "a b", "a b c", "b c", "c b", "c b b", "ab c"} {
		away := map[string][]behind{"zone-2": {{endpoint: endpoint{"192.0.2.2", 2}, ingress: "other"}}}
		for _, ingress := range strings.Fields(of) {
			away["zone-2"] = append(away["zone-2"], behind{endpoint: endpoint{"192.0.2.1", 1}, ingress: ingress})
		}
		var none *preference
		priorities := none.sort(nil, away)
		if len(priorities) != 1 || priorities[0][0].name != "" {
			t.Fatalf("%s: %+v", of, priorities)
		}
		names[of] = ""
		if len(priorities[0]) == 2 {
			names[of] = priorities[0][1].name
		}
	}
	if names["a"] != "" || names["b"] != "" {
		t.Errorf("one ingress: %v", names)
	}
	if names["b c"] != names["c b"] || names["b c"] != names["c b b"] {
		t.Errorf("the same ingresses have several names: %v", names)
	}
	different := map[string]bool{names["a"]: true, names["a b"]: true, names["a b c"]: true, names["b c"]: true, names["ab c"]: true}
	if len(different) != 5 {
		t.Errorf("other ingresses have the same name: %v", names)
	}
}

func decodedLocality(t *testing.T, text string) *resources.LocalityAwareness {
	t.Helper()
	var l resources.LocalityAwareness
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatal(err)
	}
	return &l
}
