package rbac_test

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestHandshakeThatCannotBeJudged checks that rules too many for Envoy's expressions allow no client and are reported.
func TestHandshakeThatCannotBeJudged(t *testing.T) {
	t.Parallel()
	filter, err := rbac.HandshakeFilter(clientsByName(5000), "127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "characters") || len(filter.GetOnDownstreamTlsHandshake()) != 2 {
		t.Errorf("%v, %v", filter, err)
	}
	in := &matching.InboundPort{Name: "db", Port: 1, Protocol: matching.TCP,
		Tags: map[string]string{resources.TagServerFirst: "true"}}
	if text := filter.String(); !strings.Contains(text, rbac.NameHandshakeUnjudged) {
		t.Errorf("what cannot be judged does not say so: %s", text)
	}
	if filter, err = rbac.HandshakeFilter(manyPolicies(500), "127.0.0.1:1"); err != nil ||
		!strings.Contains(filter.String(), rbac.NameHandshakeUnnamed) {
		t.Errorf("a policy too many to be named: %v", err)
	}
	if got := rbac.HandshakeWarnings(clientsByName(5000), in); len(got) != 2 ||
		!strings.Contains(got[1], "denies everybody") {
		t.Errorf("warnings: %q", got)
	}
	if got := rbac.HandshakeWarnings(clientsByName(5), in); len(got) != 1 {
		t.Errorf("warnings: %q", got)
	}
}
