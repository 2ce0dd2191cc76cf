package rbac_test

import (
	"testing"

	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Names of deciders in the stories.
const (
	operator = "kri_mtp_default___by-mesh-operator_"
	owner    = "kri_mtp_default___by-backend-owner_"
	service  = "kri_mtp_default___by-service-owner_"
)

// story is one request under the policies of one example in seed 000.
type story struct {
	example, inbound, from, method, path string
	want                                 string // the decider
	allowed, dryRunDenied                bool
}

// stories lists the requests of "Verify user stories" in seed 000. from is the part of the SPIFFE ID after the trust
// domain, which is trust-domain.mesh, unless from begins with spiffe:.
var stories = []story{
	{example: "operator-1-default-deny", from: "/ns/default/sa/frontend", want: rbac.NameDefault},
	{example: "operator-1-default-deny", inbound: "tcp-port", from: "/ns/default/sa/frontend", want: rbac.NameDefault},

	{example: "schema-rules", from: "/ns/default/sa/frontend", want: operator},
	{example: "schema-rules", from: "/ns/default/sa/api-gateway", want: service},
	{example: "schema-rules", from: "/ns/default/sa/other", want: service, allowed: true},
	{example: "schema-rules", from: "/ns/legacy/sa/old", want: service, allowed: true, dryRunDenied: true},
	{example: "schema-rules", from: "spiffe://elsewhere/ns/default/sa/other", want: rbac.NameDefault},
	{example: "schema-rules", inbound: "admin-port", from: "/ns/default/sa/other", want: rbac.NameDefault},
	{example: "schema-rules", inbound: "tcp-port", from: "/ns/default/sa/frontend", want: operator},

	{example: "operator-2-explicit-deny", from: "/ns/default/sa/api-gateway", want: operator},
	{example: "operator-2-explicit-deny", from: "/ns/default/sa/legacy-workload", want: operator},
	{example: "operator-2-explicit-deny", from: "spiffe://legacy.mesh/anything", want: operator},
	{example: "operator-2-explicit-deny", from: "/ns/default/sa/frontend", want: rbac.NameDefault},

	{example: "operator-3-observability", from: "/ns/observability/sa/prometheus", want: operator, allowed: true},
	{example: "operator-3-observability", inbound: "tcp-port", from: "/ns/observability/sa/prometheus", want: operator,
		allowed: true},
	{example: "operator-3-observability", from: "/ns/default/sa/prometheus", want: rbac.NameDefault},

	{example: "operator-4-metrics", from: "/ns/observability/sa/prometheus", path: "/metrics", want: operator,
		allowed: true},
	{example: "operator-4-metrics", from: "/ns/observability/sa/prometheus", path: "/metrics/cpu?window=5m",
		want: operator, allowed: true},
	{example: "operator-4-metrics", from: "/ns/observability/sa/prometheus", path: "/metricsx", want: rbac.NameDefault},
	{example: "operator-4-metrics", from: "/ns/observability/sa/prometheus", path: "/", want: rbac.NameDefault},
	{example: "operator-4-metrics", from: "/ns/default/sa/frontend", path: "/metrics", want: rbac.NameDefault},
	{example: "operator-4-metrics", inbound: "tcp-port", from: "/ns/observability/sa/prometheus", want: rbac.NameDefault},

	{example: "owner-1-grant", from: "/ns/any/sa/any", want: owner, allowed: true},
	{example: "owner-1-grant", from: "spiffe://trust-domain.mesh.evil/ns/any/sa/any", want: rbac.NameDefault},

	{example: "owner-2-opt-out", from: "/ns/observability/sa/prometheus", want: owner},

	{example: "owner-3-block", from: "/ns/default/sa/malicious", want: owner},
	{example: "owner-3-block", from: "/ns/default/sa/malicious-not", want: rbac.NameDefault},

	{example: "owner-4-public-get", from: "/ns/any/sa/any", method: "GET", want: owner, allowed: true},
	{example: "owner-4-public-get", from: "/ns/any/sa/any", method: "POST", want: rbac.NameDefault},
	{example: "owner-4-public-get", from: "/ns/default/sa/writer-1", method: "POST", want: owner, allowed: true},
	{example: "owner-4-public-get", from: "/ns/default/sa/writer-2", method: "POST", want: owner, allowed: true},
	{example: "owner-4-public-get", from: "/ns/default/sa/writer-3", method: "POST", want: rbac.NameDefault},
	{example: "owner-4-public-get", from: "/ns/writers/sa/any", method: "POST", want: owner, allowed: true},
	{example: "owner-4-public-get", inbound: "tcp-port", from: "/ns/any/sa/any", want: rbac.NameDefault},
	{example: "owner-4-public-get", inbound: "tcp-port", from: "/ns/writers/sa/any", want: rbac.NameDefault},

	{example: "owner-5-one-inbound", from: "/ns/any/sa/any", want: rbac.NameDefault},
	{example: "owner-5-one-inbound", inbound: "admin-port", from: "/ns/any/sa/any", want: rbac.NameDefault},
}

func (s *story) request(protocol matching.Protocol) rbac.Request {
	id := s.from
	if id[0] == '/' {
		id = "spiffe://trust-domain.mesh" + id
	}
	req := rbac.Request{Protocol: protocol, URISANs: []string{id}}
	if protocol == matching.HTTP {
		req.Method, req.Path = "GET", "/"
		if s.method != "" {
			req.Method = s.method
		}
		if s.path != "" {
			req.Path = s.path
		}
	}
	return req
}

// TestStoriesInEnvoy runs the stories with the evaluator, both forms under the interpreter, and both forms in a real Envoy.
func TestStoriesInEnvoy(t *testing.T) {
	t.Parallel()
	var sets []matching.Rules
	for i := range stories {
		sets = append(sets, stories[i].load(t).rules)
	}
	live := newLiveEnvoy(t, sets)
	for i := range stories {
		s := &stories[i]
		in := s.load(t)
		req := s.request(in.protocol)
		verdict := rbac.Evaluate(in.rules, req)
		if got := verdict.Enforced; got.Name != s.want || got.Allowed != s.allowed {
			t.Errorf("%+v: evaluator %+v", *s, got)
		}
		if denied := !verdict.DryRun.Allowed; denied != (!s.allowed || s.dryRunDenied) {
			t.Errorf("%+v: dry run %+v", *s, verdict.DryRun)
		}
		for _, form := range forms {
			if got, _ := filtersOf(form, in.rules).answers(t, req); got != (decision{s.want, s.allowed}) {
				t.Errorf("%+v: %s says %+v", *s, form, got)
			}
			if in.protocol == matching.HTTP {
				live.checkHTTP(t, listenerOf{i, form}, req, verdict)
			} else {
				live.checkTCP(t, listenerOf{i, form}, req, verdict)
			}
		}
	}
	live.checkLogs(t)
}

func (s *story) load(t *testing.T) inbound {
	t.Helper()
	section := s.inbound
	if section == "" {
		section = "http-port"
	}
	in, ok := loadInbounds(t, "testdata/seed000-"+s.example+".yaml")[section]
	if !ok {
		t.Fatalf("%+v: no such inbound", *s)
	}
	return in
}
