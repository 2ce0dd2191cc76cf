package identity_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// meshIdentity returns a MeshIdentity written at a home.
func meshIdentity(t *testing.T, h resources.Home, name, spec string) *resources.Resource {
	t.Helper()
	return resource(t, h, resources.Key{Type: resources.TypeMeshIdentity, Mesh: "default", Name: name}, spec, nil)
}

// TestWhoIsAssignedWhat checks which of several MeshIdentities decides, and which identity its templates give.
func TestWhoIsAssignedWhat(t *testing.T) {
	t.Parallel()
	global := resources.Home{}
	all := []*resources.Resource{
		meshIdentity(t, global, "everybody",
			`{"selector":{"dataplane":{}},"spiffeID":{"path":"/all/{{ .Workload }}"},"provider":{"type":"Bundled"}}`),
		meshIdentity(t, global, "nobody", `{"spiffeID":{"path":"/nobody"},"provider":{"type":"Bundled"}}`),
		meshIdentity(t, global, "b-pay", `{"selector":{"dataplane":{"matchLabels":{"team":"pay"}}},"spiffeID":{"path":"/later-name"},"provider":{"type":"Bundled"}}`),
		meshIdentity(t, global, "a-pay", `{"selector":{"dataplane":{"matchLabels":{"team":"pay"}}},"spiffeID":{"trustDomain":"{{ .Mesh }}.example","path":"/ns/{{ .Namespace }}/app/{{ label \"app\" }}"},"provider":{"type":"Bundled","bundled":{"certificateParameters":{"expiry":"1h"}}}}`),
		meshIdentity(t, home, "two-labels", `{"selector":{"dataplane":{"matchLabels":{"team":"pay","tier":"1"}}},"provider":{"type":"Spire","spire":{"agent":{"timeout":"2s"}}}}`),
		meshIdentity(t, resources.Home{Zone: "zone-2"}, "another-zones",
			`{"selector":{"dataplane":{"matchLabels":{"a":"1","b":"2","c":"3"}}},"provider":{"type":"Bundled"}}`),
		meshIdentity(t, home, "foreign-domain", `{"selector":{"dataplane":{"matchLabels":{"a":"1","b":"2"}}},"spiffeID":{"trustDomain":"default.zone-2.mesh.local"},"provider":{"type":"Bundled"}}`),
	}
	const own = "spiffe://default.zone-1.mesh.local"
	for _, c := range []struct {
		name, namespace string
		labels          map[string]string
		unready         string
		want, by        string // want is empty if there is no identity
		spire           bool
		lifetime        time.Duration
	}{
		{"least specific", "", nil, "", own + "/all/backend", "everybody", false, identity.Lifetime},
		{"one label, the smaller name", "shop", map[string]string{"team": "pay", "app": "till"}, "",
			"spiffe://default.example/ns/shop/app/till", "a-pay", false, time.Hour},
		{"passed over while it is not ready", "shop", map[string]string{"team": "pay", "app": "till"},
			"default:default.example", own + "/later-name", "b-pay", false, identity.Lifetime},
		{"a label that it has not", "shop", map[string]string{"team": "pay"}, "", "", "", false, 0},
		{"a label that would be two segments", "shop", map[string]string{"team": "pay", "app": "a/b"}, "", "", "", false, 0},
		{"a label that would go up", "shop", map[string]string{"team": "pay", "app": ".."}, "", "", "", false, 0},
		{"more labels, the default path", "shop", map[string]string{"team": "pay", "tier": "1",
			resources.LabelServiceAccount: "till"}, "", own + "/ns/shop/sa/till", "two-labels", true, identity.Lifetime},
		{"more labels, without an account", "shop", map[string]string{"team": "pay", "tier": "1"}, "",
			own + "/workload/backend", "two-labels", true, identity.Lifetime},
		{"another zone's counts for nothing", "", map[string]string{"a": "1", "b": "2", "c": "3"}, "",
			own + "/all/backend", "everybody", false, identity.Lifetime},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 {
				slices.Reverse(all) // the order of reading must not matter
				assignments := identity.AssignmentsOf(slices.Values(all), "default", "zone-1",
					func(meshDomain string) bool { return meshDomain != c.unready })
				got, err := assignments.Of(dataplane(t, c.namespace, "backend", c.labels))
				if c.want == "" {
					if !errors.Is(err, identity.ErrIdentity) {
						t.Fatalf("got %+v, %v", got, err)
					}
					continue
				}
				must(t, err)
				if got.ID.String() != c.want || got.By.Name != c.by || got.Spire != c.spire || got.Lifetime != c.lifetime {
					t.Errorf("got %s by %s, SPIRE %v, for %s", got.ID, got.By.Name, got.Spire, got.Lifetime)
				}
			}
		})
	}
}

// TestWithoutMeshIdentityNothingChanges checks that Dataplanes keep their default identity without a MeshIdentity.
func TestWithoutMeshIdentityNothingChanges(t *testing.T) {
	t.Parallel()
	got, err := identity.AssignmentsOf(slices.Values([]*resources.Resource{}), "default", "zone-1",
		nil).Of(dataplane(t, "ns", "x", map[string]string{resources.LabelServiceAccount: "a"}))
	must(t, err)
	if got.ID.String() != "spiffe://default.zone-1.mesh.local/ns/ns/sa/a" || got.By != nil || got.Spire ||
		got.Lifetime != identity.Lifetime {
		t.Errorf("got %+v", got)
	}
}

// TestOtherTrustDomain checks that a MeshIdentity with its own trust domain gets an authority, which is published
// before it signs, and removed when all certificates that it signed have expired.
func TestOtherTrustDomain(t *testing.T) {
	t.Parallel()
	now := time.Now()
	clock := func() time.Time { return now }
	memory := store.NewMemory()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	a := identity.NewAuthorities(identity.Config{Keeper: secrets.NewKeeper(memory, box), Store: memory, Zone: "zone-1",
		Now: clock})
	p := &identity.Publisher{Store: memory, Home: home, Authorities: a, Log: slog.New(slog.DiscardHandler)}
	apply := func(op store.Op) {
		t.Helper()
		_, err := memory.Apply(t.Context(), store.Batch{Ops: []store.Op{op}})
		must(t, err)
	}
	settle := func() {
		t.Helper()
		must(t, p.Ensure(t.Context(), "default"))
		revision := memory.Snapshot().Revision()
		must(t, p.Ensure(t.Context(), "default"))
		if got := memory.Snapshot().Revision(); got != revision {
			t.Errorf("wrote although nothing differed: revision %d, then %d", revision, got)
		}
	}
	bundles := func() int {
		id, err := a.Issue(dataplane(t, "", "x", map[string]string{"team": "pay"}))
		must(t, err)
		if !strings.HasPrefix(id.ID.String(), "spiffe://default.zone-1.mesh.local/") &&
			id.ID.String() != "spiffe://pay.example/workload/x" {
			t.Errorf("it is %s", id.ID)
		}
		return len(identity.BundlesOf(memory.Snapshot(), "default", home).Domains())
	}
	const meshDomain = "default:pay.example"
	apply(store.Op{Put: resource(t, resources.Home{}, resources.Key{Type: resources.TypeMesh, Name: "default"},
		`{}`, nil)})
	settle()
	pay := meshIdentity(t, resources.Home{}, "pay", `{"selector":{"dataplane":{"matchLabels":{"team":"pay"}}},"spiffeID":{"trustDomain":"pay.example"},"provider":{"type":"Bundled"}}`)
	apply(store.Op{Put: pay})
	settle()
	if a.Ready(meshDomain) || bundles() != 2 {
		t.Errorf("it signs already, or is not published")
	}
	who := func() string {
		got, err := a.Assigned(dataplane(t, "", "x", map[string]string{"team": "pay"}))
		must(t, err)
		return got.ID.String()
	}
	if got := who(); got != "spiffe://default.zone-1.mesh.local/workload/x" {
		t.Errorf("before it signs, it is %s", got)
	}
	all, err := a.All(meshDomain)
	must(t, err)
	must(t, a.Promote(t.Context(), meshDomain, all[0].ID()))
	if got := who(); got != "spiffe://pay.example/workload/x" {
		t.Errorf("then it is %s", got)
	}
	apply(store.Op{Delete: pay.Key})
	settle()
	if got := who(); got != "spiffe://default.zone-1.mesh.local/workload/x" {
		t.Errorf("without the MeshIdentity it is %s", got)
	}
	if refused := a.Retire(t.Context(), meshDomain, all[0].ID(), false); !errors.Is(refused, identity.ErrRotation) {
		t.Errorf("retired while what it signed is in use: %v", refused)
	}
	now = now.Add(identity.Lifetime + time.Hour)
	must(t, a.Retire(t.Context(), meshDomain, all[0].ID(), false))
	settle()
	if got := a.MeshDomains("default"); len(got) != 1 {
		t.Errorf("left are %v", got)
	}
	if n := bundles(); n != 1 {
		t.Errorf("%d trust domains are believed", n)
	}
}

// TestWhoMaySpeakForATrustDomain checks that a zone may speak for its own trust domain, and for those that a
// MeshIdentity of the global grants it.
func TestWhoMaySpeakForATrustDomain(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory()
	for name, put := range map[string]struct {
		home resources.Home
		spec string
	}{
		"per-zone": {resources.Home{}, `{"selector":{"dataplane":{}},"spiffeID":{"trustDomain":"{{ .Zone }}.example"},"provider":{"type":"Bundled"}}`},
		"nobody":   {resources.Home{}, `{"spiffeID":{"trustDomain":"nobody.example"},"provider":{"type":"Bundled"}}`},
		"spire": {resources.Home{},
			`{"selector":{"dataplane":{}},"spiffeID":{"trustDomain":"spire.example"},"provider":{"type":"Spire"}}`},
		"of-the-zone": {resources.Home{Zone: "zone-2"},
			`{"selector":{"dataplane":{}},"spiffeID":{"trustDomain":"stolen.example"},"provider":{"type":"Bundled"}}`},
	} {
		_, err := memory.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: meshIdentity(t, put.home, name, put.spec)}}})
		must(t, err)
	}
	grants := identity.GrantsIn(memory.Snapshot(), "default")
	for _, c := range []struct {
		zone, domain string
		want         bool
	}{
		{"zone-2", "default.zone-2.mesh.local", true}, {"zone-2", "zone-2.example", true},
		{"zone-2", "zone-1.example", false}, {"zone-2", "default.zone-1.mesh.local", false},
		{"zone-2", "nobody.example", false}, {"zone-2", "spire.example", false}, {"zone-2", "stolen.example", false},
		{"", "anything.example", true},
	} {
		if got := grants.MaySpeak(c.zone, c.domain); got != c.want {
			t.Errorf("zone %q for %s: %v", c.zone, c.domain, got)
		}
	}
}
