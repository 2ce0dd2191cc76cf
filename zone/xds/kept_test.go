package xds_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

const (
	tcpInbound = `{"name": "raw", "port": 8081, "servicePort": 9081, "protocol": "tcp"}`
	rawFilter  = "self_inbound_dp_raw_rbac_tcp"
	rawDryRun  = "self_inbound_dp_raw_rbac_tcp_dryrun"
)

var (
	allFilters = []string{mainFilter, rawFilter, rawDryRun}
	ownSecrets = []string{ownIdentity, meshTrust}
)

// permissionAt allows a SPIFFE ID on one inbound of the Dataplane backend.
func (z *zoneServer) permissionAt(section, spiffeID string) {
	z.t.Helper()
	z.put(resources.TypeMeshTrafficPermission, "at-"+section, `{"targetRef": {"kind": "Dataplane", "labels": {"app": "backend"}, "sectionName": "`+section+`"},
		"rules": [{"default": {"allow": [{"spiffeId": {"type": "Exact", "value": "`+spiffeID+`"}}]}}]}`, nil)
}

// whole is a proxy of the Dataplane backend with all that it may ask for.
func (z *zoneServer) whole() *deltaClient {
	z.t.Helper()
	c := z.delta()
	c.subscribe(nodeOf("backend", ""), cds, "*")
	c.next(cds)
	c.subscribe(nil, lds, "*")
	c.next(lds)
	c.subscribe(nil, ecds, allFilters...)
	if r := c.next(ecds); len(r.Resources) != len(allFilters) {
		z.t.Fatalf("the filters are %v", names(r))
	}
	c.subscribe(nil, sds, ownSecrets...)
	if r := c.next(sds); len(r.Resources) != len(ownSecrets) {
		z.t.Fatalf("the secrets are %v", names(r))
	}
	return c
}

// again is the proxy that c was on a new stream, where it says what it has. All that it is sent for that comes before
// the answer of barrier.
func (z *zoneServer) again(c *deltaClient) *deltaClient {
	z.t.Helper()
	c.close()
	next := z.delta()
	next.versions = c.versions
	next.send(&discovery.DeltaDiscoveryRequest{Node: nodeOf("backend", ""), TypeUrl: cds,
		ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: c.versions[cds]})
	next.send(&discovery.DeltaDiscoveryRequest{TypeUrl: sds, ResourceNamesSubscribe: ownSecrets,
		InitialResourceVersions: c.versions[sds]})
	next.send(&discovery.DeltaDiscoveryRequest{TypeUrl: lds, ResourceNamesSubscribe: []string{"*"},
		InitialResourceVersions: c.versions[lds]})
	next.send(&discovery.DeltaDiscoveryRequest{TypeUrl: ecds, ResourceNamesSubscribe: allFilters,
		InitialResourceVersions: c.versions[ecds]})
	next.subscribe(nil, rds, "*")
	return next
}

// barrier is the first answer, when nothing was sent before: that there are no routes.
func (c *deltaClient) barrier() {
	c.t.Helper()
	c.next(rds)
	c.nothing()
}

// counts are a metric's values by label.
func (z *zoneServer) counts(name string) map[string]float64 {
	z.t.Helper()
	families, err := z.registry.Gather()
	must(z.t, err)
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			label := ""
			for _, l := range m.GetLabel() {
				label += l.GetValue()
			}
			if family.GetName() == name && m.GetCounter().GetValue() > 0 {
				out[label] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// TestNothingIsSentAfterARestart: a proxy that comes back with what it has is sent nothing, its identity and the filter
// chains of TCP inbounds among it; and what changed meanwhile is all that it is sent.
func TestNothingIsSentAfterARestart(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.trust()
	z.dataplane("backend", httpInbound+","+tcpInbound)
	z.permission("ours", "backend", "spiffe://td/a")
	c := z.whole()
	// More may get in: the filters of the TCP inbound change, and its chain stays, by a mark that the filters do not tell.
	z.permission("more", "backend", "spiffe://td/more")
	if got := names(c.next(ecds)); !slices.Equal(got, slices.Sorted(slices.Values(allFilters))) {
		t.Fatalf("got %v", got)
	}
	c = z.again(c)
	c.barrier()
	if got := z.counts("causeway_identity_issued_total"); got[""] != 1 {
		t.Errorf("%v identities were issued by a reconnect", got)
	}
	for range 2 {
		c.close()
		z.stop()
		z.start()
		c = z.again(c)
		c.barrier()
	}
	if issued, kept := z.counts("causeway_identity_issued_total"),
		z.counts("causeway_identity_kept_total"); len(issued) > 0 || !maps.Equal(kept, map[string]float64{"used": 1}) {
		t.Errorf("after a restart %v identities were issued, and of those that were kept %v", issued, kept)
	}
	z.insight("backend", func(i *meshpb.DataplaneInsight) bool {
		return i.GetMTLS().GetCertificateRegenerations() == 1 && i.GetMTLS().GetLastCertificateRegeneration().IsValid()
	})
	// What changes while the zone is away is sent, and nothing else.
	c.close()
	z.stop()
	z.permissionAt("main", "spiffe://td/meanwhile")
	z.start()
	c = z.again(c)
	if r := c.next(ecds); !slices.Equal(names(r), []string{mainFilter}) ||
		!strings.Contains(string(r.Resources[0].Resource.Value), "meanwhile") {
		t.Errorf("got %v", names(r))
	}
	c.barrier()
}

// TestAccessThatIsLostWhileTheZoneIsAway: the chain of a TCP inbound is another one when anything may have been lost,
// what was lost and given again among it.
func TestAccessThatIsLostWhileTheZoneIsAway(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", tcpInbound)
	z.permission("ours", "backend", "spiffe://td/a")
	var c *deltaClient
	connect := func() (chain string) {
		t.Helper()
		c = z.delta()
		c.subscribe(nodeOf("backend", ""), lds, "*")
		chain = c.next(lds).Resources[0].Version
		c.subscribe(nil, ecds, rawFilter)
		c.next(ecds)
		return chain
	}
	more := func() {
		t.Helper()
		z.permission("more", "backend", "spiffe://td/b")
		c.next(ecds) // and no other chain comes before
	}
	restart := func(meanwhile func()) (chain string) {
		t.Helper()
		c.nothing()
		c.close()
		z.stop()
		meanwhile()
		z.start()
		return connect()
	}
	nothing := func() {}
	first := connect()
	more()
	if got := restart(nothing); got != first {
		t.Error("nothing was lost by a restart, and the chain is another one")
	}
	second := restart(func() { z.delete(resources.TypeMeshTrafficPermission, "more") })
	if second == first {
		t.Error("b was lost, and the chain stays: the filters are those with which it was made")
	}
	if got := restart(nothing); got != second {
		t.Error("nothing was lost by another restart, and the chain is another one")
	}
	more()
	third := restart(func() { z.delete(resources.TypeMeshTrafficPermission, "ours") })
	if third == first || third == second {
		t.Error("a was lost, and the chain stays")
	}
}

// TestStateOfTheWorldAfterARestart: in the older form of the protocol too, a proxy that has everything is sent nothing.
func TestStateOfTheWorldAfterARestart(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.trust()
	z.dataplane("backend", httpInbound+","+tcpInbound)
	z.permission("ours", "backend", "spiffe://td/a")
	c := z.sotw()
	c.request(envoyOf("backend"), cds, "")
	versions := map[string]string{cds: c.next(cds, "").VersionInfo}
	c.request(nil, lds, "")
	versions[lds] = c.next(lds, "").VersionInfo
	c.request(nil, ecds, "", allFilters...)
	versions[ecds] = c.next(ecds, "", allFilters...).VersionInfo
	c.request(nil, sds, "", ownSecrets...)
	versions[sds] = c.next(sds, "", ownSecrets...).VersionInfo
	z.permission("more", "backend", "spiffe://td/more")
	versions[ecds] = c.next(ecds, "", allFilters...).VersionInfo
	c.close()
	z.stop()
	z.start()
	c = z.sotw()
	c.request(envoyOf("backend"), cds, versions[cds])
	c.request(nil, lds, versions[lds])
	c.request(nil, ecds, versions[ecds], allFilters...)
	c.request(nil, sds, versions[sds], ownSecrets...)
	c.request(nil, rds, "") // answered in any case
	c.next(rds, "")
	c.nothing()
}
