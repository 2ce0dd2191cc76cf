package zone

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/questions/questionspb"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/envoyadmin"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// TestProxyThatCannotBeAsked has the global ask for a proxy at an invalid address. The global learns that the log of
// the zone says why, and it does.
func TestProxyThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	spec, err := resources.NewSpec(resources.TypeDataplane, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	held := store.NewMemory()
	dp := &resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "backend"},
		Labels: map[string]string{}, Spec: spec}
	if _, err := held.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: dp}}}); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	answers := answers{log: slog.New(slog.NewTextHandler(&logged, nil)), admins: envoyadmin.New(envoyadmin.Config{
		Store: held, Home: resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace},
		Assigned: func(*resources.Resource) (identity.Assigned, error) {
			return identity.Assigned{ID: spiffeid.RequireFromString("spiffe://default/backend")}, nil
		},
		Admin: func(resources.Key) (string, int, error) { return "no host", 1, nil }, Key: &envoyadmin.Key{},
	})}
	answer := answers.answer(t.Context(), &questionspb.Question{Subject: questionspb.Question_SUBJECT_STATS, Mesh: "default", Name: "backend"})
	if answer.Status != http.StatusBadGateway || !strings.Contains(answer.Detail, "log of the zone's server says why") {
		t.Errorf("the global learns %d %s", answer.Status, answer.Detail)
	}
	if said := logged.String(); !strings.Contains(said, "dataplane=backend") || !strings.Contains(said, "no%20host") {
		t.Errorf("the log says %q", said)
	}
}
