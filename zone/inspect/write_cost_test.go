package inspect_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	durable "github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/inspect"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// writer writes policies to the HTTP API of a zone: with its audit log, its sealed store in a file, and its warnings. Those
// and who follows the store read a policy once.
type writer struct {
	server *api.Server
	store  store.Reader
	read   matching.LastRead
}

func newWriter(t testing.TB, dataplanes int) *writer {
	t.Helper()
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	box, err := secrets.OpenBox(secrets.Config{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	fields := secrets.NewFields(box)
	s, err := durable.OpenSealed(t.Context(), durable.Config{Path: filepath.Join(dir, "store.db"), Log: log}, fields)
	if err != nil {
		t.Fatal(err)
	}
	home := resources.Home{Zone: "zone-1", Alone: true, SystemNamespace: resources.DefaultSystemNamespace}
	if err := api.EnsureDefaults(t.Context(), s, home); err != nil {
		t.Fatal(err)
	}
	batch := store.Batch{}
	put := func(typ resources.Type, name, text string, labels map[string]string) {
		spec, err := resources.NewSpec(typ, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		batch.Ops = append(batch.Ops, store.Op{Put: home.Labelled(&resources.Resource{
			Key: resources.Key{Type: typ, Mesh: "default", Name: name}, Spec: spec, Labels: labels})})
	}
	put(resources.TypeMeshService, "bench", `{"selector":{"dataplaneTags":{"app":"bench"}},"ports":[{"port":80,"targetPort":8080,"appProtocol":"http"}]}`, nil)
	for i := range dataplanes {
		put(resources.TypeDataplane, fmt.Sprintf("dp-%d", i), `{"networking":{"address":"192.0.2.1","inbound":[{"port":8080,"tags":{"app":"bench","kuma.io/protocol":"http"}}]}}`,
			map[string]string{"proxy": fmt.Sprintf("dp-%d", i)})
	}
	if _, err := s.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	audit, err := access.OpenLog(access.LogConfig{Dir: filepath.Join(dir, "audit")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := audit.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	guard := access.NewGuard(access.Config{Store: s, Audit: audit, OIDC: anyToken{}, Log: log,
		Limits: access.Limits{RequestsPerSecond: 1e9, RequestsBurst: 1e9}})
	server := api.New(api.Config{Store: s, Home: home, Guard: guard, Fields: fields, Log: log})
	w := &writer{server: server, store: s}
	inspect.Register(server, inspect.Config{Store: s, Zone: home.Zone, SystemNamespace: home.SystemNamespace, LastRead: &w.read})
	return w
}

// anyToken takes each token for the administrator's.
type anyToken struct{}

func (anyToken) Verify(*http.Request, string) (access.Subject, error) {
	return access.Subject{Name: "writer", Groups: []string{access.AdminGroup}, Method: access.ByToken}, nil
}

// writtenPolicy is a policy whose changes are measured: the n-th for one proxy.
type writtenPolicy struct {
	typ  resources.Type
	spec string
}

var writtenPolicies = []writtenPolicy{
	{resources.TypeMeshHTTPRoute, `"to": [{"targetRef": {"kind": "MeshService", "name": "bench"}, "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}], "default": {"filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-bench", "value": "w%d"}]}}]}}]}]`},
	{resources.TypeMeshTimeout, `"to": [{"targetRef": {"kind": "MeshService", "name": "bench"}, "default": {"http": {"streamIdleTimeout": "%dms", "requestTimeout": "0s"}}}]`},
	{resources.TypeMeshRateLimit, `"rules": [{"default": {"local": {"http": {"requestRate": {"num": %d, "interval": "1s"}}}}}]`},
	{resources.TypeMeshAccessLog, `"rules": [{"default": {"backends": [{"type": "File", "file": {"path": "/dev/stdout", "format": {"type": "Plain", "plain": "w%d"}}}]}}]`},
	{resources.TypeMeshPassthrough, `"default": {"passthroughMode": "Matched", "appendMatch": [{"type": "Domain", "value": "w%d.example", "port": 443, "protocol": "tls"}]}`},
	{resources.TypeMeshProxyPatch, `"default": {"appendModifications": [{"cluster": {"operation": "Add", "value": "name: w%d\nconnectTimeout: 1s\ntype: STATIC\n"}}]}`},
}

func (w *writer) put(t testing.TB, p *writtenPolicy, n int) {
	d := (&resources.Resource{Key: resources.Key{Type: p.typ}}).Descriptor()
	body := fmt.Sprintf(`{"type": %q, "mesh": "default", "name": "one", "labels": {"team": "a"}, "spec": {"targetRef": {"kind": "Dataplane", "labels": {"proxy": "dp-1"}}, `+p.spec+`}}`, p.typ, n)
	r := httptest.NewRequest(http.MethodPut, "/meshes/default/"+d.Path+"/one", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer t")
	answer := httptest.NewRecorder()
	if w.server.ServeHTTP(answer, r); answer.Code != http.StatusOK && answer.Code != http.StatusCreated {
		t.Fatalf("%s: %d %s", p.typ, answer.Code, answer.Body)
	}
	stored := w.store.Snapshot().Get(resources.Key{Type: p.typ, Mesh: "default", Name: "one"})
	if w.read.Policy(stored, resources.DefaultSystemNamespace).Resource != stored {
		t.Fatalf("%s: not read as it is stored", p.typ)
	}
}

// BenchmarkWriteOfAPolicy measures a change of one policy from the HTTP API to the commit in the store's file and the line
// in the audit log.
func BenchmarkWriteOfAPolicy(b *testing.B) {
	w := newWriter(b, 200)
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for i := range writtenPolicies {
		p, n := &writtenPolicies[i], 7000
		b.Run(string(p.typ), func(b *testing.B) {
			b.ReportAllocs()
			before := used()
			for b.Loop() {
				n++
				w.put(b, p, n)
			}
			b.ReportMetric(float64((used()-before).Microseconds())/float64(b.N), "cpu-us")
		})
	}
}

// allocationsOfAWrite are the most allocations of a change of each policy, from the HTTP API to the store's file and the
// audit log, also under the race detector, which allocates a little itself: a document is parsed once, and what nothing has
// changed in is not read for it.
var allocationsOfAWrite = map[resources.Type]float64{resources.TypeMeshHTTPRoute: 835, resources.TypeMeshTimeout: 565,
	resources.TypeMeshRateLimit: 596, resources.TypeMeshAccessLog: 620, resources.TypeMeshPassthrough: 560,
	resources.TypeMeshProxyPatch: 690}

func TestAWriteOfAPolicyAllocatesLittle(t *testing.T) { // it counts allocations, so it runs alone
	w := newWriter(t, 20)
	for i := range writtenPolicies {
		p, n := &writtenPolicies[i], 7000
		per := testing.AllocsPerRun(20, func() {
			n++
			w.put(t, p, n)
		})
		if most := allocationsOfAWrite[p.typ]; per > most {
			t.Errorf("%s: %.0f allocations for a change, want at most %.0f", p.typ, per, most)
		}
	}
}
