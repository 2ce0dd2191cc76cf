package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// The policies of these tests, by the server that they are applied on.
const (
	operatorKRI = "kri_mtp_default___by-operator_"
	ownerKRI    = "kri_mtp_default_zone-1_backend-ns_by-owner_"
	undecided   = "default"
)

func operator(conf string) string {
	return "{type: MeshTrafficPermission, mesh: default, name: by-operator, spec: {default: " + conf + "}}"
}

func owner(section, conf string) string {
	target := "kind: Dataplane, labels: {app: backend}"
	if section != "" {
		target += ", sectionName: " + section
	}
	return "{type: MeshTrafficPermission, mesh: default, namespace: backend-ns, name: by-owner, spec: {targetRef: {" +
		target + "}, default: " + conf + "}}"
}

// entry returns a conf with one list of one entry.
func entry(list, kind, id string) string {
	return fmt.Sprintf("{%s: [{spiffeId: {type: %s, value: %q}}]}", list, kind, id)
}

// enforcement is a workload in zone-1 and clients of both zones.
type enforcement struct {
	*mesh
	zone1, zone2     *cluster.Server
	backend          *cluster.Workload
	frontend, remote *cluster.Client
	frontendID       *cluster.Identity
}

func TestEnforcement(t *testing.T) {
	t.Parallel()
	e := &enforcement{mesh: newMesh(t, "zone-1", "zone-2")}
	e.zone1, e.zone2 = e.zones["zone-1"], e.zones["zone-2"]
	e.backend = e.workload(e.zone1,
		cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP},
		cluster.InboundConfig{Name: "admin-port", Protocol: cluster.ProtocolHTTP},
		cluster.InboundConfig{Name: "tcp-port", Protocol: cluster.ProtocolTCP})
	e.frontend, e.frontendID = e.client(e.zone1, "frontend")
	e.remote, _ = e.client(e.zone2, "api-gateway")

	for _, tt := range []struct {
		name string
		test func(*testing.T, *enforcement)
	}{
		{"denied by default", testDefaultDeny},
		{"the operator's deny beats the owner's allow", testOperatorDenies},
		{"sectionName limits to one inbound", testSectionName},
		{"a shadow deny lets pass and is counted", testShadowDeny},
		{"TCP inbound", testTCP},
		{"HTTP/2", testHTTP2},
		{"a client of the other zone", testCrossZone},
		{"two URI SANs", testTwoSANs},
		{"no URI SAN", testNoSAN},
		{"plaintext", testPlaintext},
		{"foreign CA", testForeignCA},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inner := *e
			inner.mesh = &mesh{Cluster: e.Cluster, t: t, global: e.global, zones: e.zones}
			tt.test(t, &inner)
		})
	}
}

// with applies policies for the rest of the test. At its end, it waits until they are gone from the Envoy.
func (e *enforcement) with(s *cluster.Server, documents string) {
	e.t.Helper()
	e.apply(s, documents)
	e.t.Cleanup(func() {
		ctx := context.Background() // the test's own has ended
		_, err := e.CTL(ctx, s, strings.NewReader(documents), "delete", "-f", "-")
		if err == nil {
			err = cluster.Until(ctx, patience, "the Envoy to forget the policy", e.forgotten)
		}
		if err != nil {
			e.t.Error(err)
		}
	})
}

// forgotten checks that the Envoy's configuration contains no policy of these tests, unless both are applied.
func (e *enforcement) forgotten(ctx context.Context) error {
	config, err := e.backend.Proxy.ConfigDump(ctx)
	if err != nil {
		return err
	}
	for kri, s := range map[string]*cluster.Server{operatorKRI: e.global, ownerKRI: e.zone1} {
		stored := s.API.Get(ctx, "/_kri/"+kri, nil) == nil
		if !stored && strings.Contains(config, kri) {
			return fmt.Errorf("%s is still enforced", kri)
		}
	}
	return nil
}

// becomes waits until the Envoy decides a call as expected, by the named policy.
func (e *enforcement) becomes(c *cluster.Client, inbound string, allowed bool, by string) {
	e.t.Helper()
	e.eventually("the verdict on "+c.ID(), func(ctx context.Context) error {
		v, err := e.backend.Judge(ctx, c, inbound, "/")
		if err != nil {
			return err
		}
		if v.Allowed() != allowed || v.DecidedBy != by {
			return fmt.Errorf("%s, want allowed=%t by %s", v, allowed, by)
		}
		return nil
	})
}

// untouched fails if a request reaches an application while do runs.
func (e *enforcement) untouched(inbound string, do func()) {
	e.t.Helper()
	before := e.backend.Inbound(inbound).Count()
	do()
	if after := e.backend.Inbound(inbound).Count(); after != before {
		e.t.Errorf("the application of %s was reached %d times", inbound, after-before)
	}
}

func testDefaultDeny(_ *testing.T, e *enforcement) {
	e.untouched("http-port", func() {
		e.becomes(e.frontend, "http-port", false, undecided)
		e.becomes(e.remote, "http-port", false, undecided)
	})
}

func testOperatorDenies(_ *testing.T, e *enforcement) {
	e.with(e.zone1, owner("", entry("allow", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	e.becomes(e.frontend, "http-port", true, ownerKRI)
	e.with(e.global, operator(entry("deny", "Exact", spiffeID("zone-1", "frontend"))))
	e.becomes(e.frontend, "http-port", false, operatorKRI)
	e.becomes(e.frontend, "admin-port", false, operatorKRI)
}

func testSectionName(_ *testing.T, e *enforcement) {
	e.with(e.zone1, owner("admin-port", entry("allow", "Exact", spiffeID("zone-1", "frontend"))))
	e.becomes(e.frontend, "admin-port", true, ownerKRI)
	e.becomes(e.frontend, "http-port", false, undecided)
}

func testShadowDeny(t *testing.T, e *enforcement) {
	e.with(e.global, operator(fmt.Sprintf(
		"{allowWithShadowDeny: [{spiffeId: {type: Exact, value: %q}}], allow: [{spiffeId: {type: Exact, value: %q}}]}",
		spiffeID("zone-1", "frontend"), spiffeID("zone-2", "api-gateway"))))
	e.becomes(e.remote, "http-port", true, operatorKRI)
	before := e.shadowDenied()
	e.becomes(e.remote, "http-port", true, operatorKRI)
	if after := e.shadowDenied(); after != before {
		t.Errorf("a request that is simply allowed was counted as shadow-denied: %d, then %d", before, after)
	}
	e.becomes(e.frontend, "http-port", true, operatorKRI)
	if after := e.shadowDenied(); after != before+1 {
		t.Errorf("shadow_denied was %d and is %d, want one more", before, after)
	}
}

func (e *enforcement) shadowDenied() uint64 {
	e.t.Helper()
	stats, err := e.backend.Proxy.Stats(e.t.Context(), `^http\.self_inbound_dp_http-port\.rbac\.dryrun_\.shadow_denied$`)
	e.must(err)
	if len(stats) != 1 {
		e.t.Fatalf("want one counter of shadow denials, got %v", stats)
	}
	for _, n := range stats {
		return n
	}
	return 0
}

func testTCP(_ *testing.T, e *enforcement) {
	port := e.backend.Inbound("tcp-port").Port
	e.untouched("tcp-port", func() {
		for range 5 {
			if err := e.frontend.Echo(e.t.Context(), port); !errors.Is(err, cluster.ErrRefused) {
				e.t.Errorf("without a policy: %v, want the connection refused", err)
			}
		}
	})
	e.with(e.zone1, owner("tcp-port", entry("allow", "Exact", spiffeID("zone-1", "frontend"))))
	e.eventually("frontend to be let in", func(ctx context.Context) error { return e.frontend.Echo(ctx, port) })
	e.untouched("tcp-port", func() {
		if err := e.remote.Echo(e.t.Context(), port); !errors.Is(err, cluster.ErrRefused) {
			e.t.Errorf("a client that is not named: %v, want the connection refused", err)
		}
	})
}

func testHTTP2(t *testing.T, e *enforcement) {
	c := cluster.NewClient(e.frontendID, true)
	defer c.Close()
	e.becomes(c, "http-port", false, undecided)
	e.with(e.zone1, owner("", entry("allow", "Exact", spiffeID("zone-1", "frontend"))))
	e.becomes(c, "http-port", true, ownerKRI)
	stats, err := e.backend.Proxy.Stats(t.Context(), `^http\.self_inbound_dp_http-port\.downstream_cx_http2_total$`)
	e.must(err)
	for name, n := range stats {
		if n == 0 {
			t.Errorf("%s is 0: the calls were not HTTP/2", name)
		}
	}
	if len(stats) != 1 {
		t.Errorf("want one counter of HTTP/2 connections, got %v", stats)
	}
}

func testCrossZone(_ *testing.T, e *enforcement) {
	e.with(e.zone1, owner("", entry("allow", "Exact", spiffeID("zone-2", "api-gateway"))))
	e.becomes(e.remote, "http-port", true, ownerKRI)
	e.becomes(e.frontend, "http-port", false, undecided)
}
