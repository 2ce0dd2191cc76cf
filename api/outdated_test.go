package api

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// plainPage is a page of one file.
type plainPage struct{ Page }

func (plainPage) Serves(path string) bool { return path == pagePath }

func (plainPage) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// TestWhatMayBeOlderIsSaidToBe checks that each answer of a server that does not hear its store says so, also that there
// is no such thing, and no answer of one that does. Strangers, who get the page only, are not told why.
func TestWhatMayBeOlderIsSaidToBe(t *testing.T) {
	const doubt = "what others wrote since 2026-11-20T10:00:00Z is unknown"
	var doubts []string
	s := New(Config{Store: store.NewMemory(), Home: resources.Home{}, Page: plainPage{},
		Outdated: func(bool, resources.Type) []string { return doubts }})
	client := httptest.NewServer(s)
	t.Cleanup(client.Close)
	var said []string
	c, err := NewClient(ClientConfig{Address: client.URL, Warned: func(_, text string) { said = append(said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, now := range [][]string{nil, {doubt}} {
		doubts, said = now, nil
		if _, err := c.Do(t.Context(), Request{Path: "/meshes"}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(said, now) {
			t.Errorf("a list: %q, want %q", said, now)
		}
		recorder := httptest.NewRecorder()
		s.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/meshes/none", http.NoBody))
		if got := recorder.Header().Get(WarningHeader); recorder.Code != http.StatusNotFound || (got != "") != (now != nil) {
			t.Errorf("what is not there: %d, %q, want %q", recorder.Code, got, now)
		}
		page := httptest.NewRecorder()
		s.ServeHTTP(page, httptest.NewRequest(http.MethodGet, pagePath, http.NoBody))
		if got := page.Header().Get(WarningHeader); page.Code != http.StatusOK || got != "" {
			t.Errorf("the page: %d, %q", page.Code, got)
		}
	}
}

// TestWhatDependsOnTheGlobal asks a zone that does not know what its global wrote. What the global may have a part in is
// doubted, that there is no such thing included; what only the zone knows is not, and neither is what is stored here now.
func TestWhatDependsOnTheGlobal(t *testing.T) {
	const doubt = "the global is away"
	memory := store.NewMemory()
	s := New(Config{Store: memory, Home: resources.Home{Zone: "zone-1"}, Outdated: func(ofGlobal bool, _ resources.Type) []string {
		if ofGlobal {
			return []string{doubt}
		}
		return nil
	}})
	spec, err := resources.NewSpec(resources.TypeMesh, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	mesh := resources.Home{}.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMesh, Name: "default"}, Spec: spec})
	if _, err := memory.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: mesh}}}); err != nil {
		t.Fatal(err)
	}
	const own = `{"type": "MeshTimeout", "mesh": "%s", "name": "own", "spec": {"to": [{"targetRef": {"kind": "Mesh"}, "default": {"connectionTimeout": "1s"}}]}}`
	in := func(mesh string) string { return strings.Replace(own, "%s", mesh, 1) }
	for _, c := range []struct {
		method, path, body string
		status             int
		doubted            bool
	}{
		{"GET", "/meshes", "", 200, true},
		{"GET", "/meshes/default/meshtimeouts", "", 200, true},
		{"GET", "/meshes/default/meshservices", "", 200, true}, // other zones' come by the global
		{"GET", "/meshes/default/dataplanes", "", 200, false},
		{"GET", "/meshes/none/dataplanes", "", 404, true},
		{"GET", "/meshes/default/meshtimeouts/own", "", 404, true},
		{"GET", "/global-insight", "", 200, true},
		{"GET", "/who-am-i", "", 200, false},
		{"POST", "/_can-i", `{"verb": "read", "type": "Mesh"}`, 200, false},
		{"POST", "/_batch?dryRun=server", in("default"), 200, true},
		{"POST", "/_batch", in("default"), 200, false},
		{"GET", "/meshes/default/meshtimeouts/own", "", 200, true},
		{"GET", "/_kri/kri_mt_default_zone-1__own_", "", 200, true},
		{"DELETE", "/meshes/default/meshtimeouts/own", "", 200, false},
	} {
		recorder := httptest.NewRecorder()
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		if c.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		s.ServeHTTP(recorder, r)
		doubts := warningsIn(recorder.Header())
		if recorder.Code != c.status || (len(doubts) == 1 && doubts[0] == doubt) != c.doubted {
			t.Errorf("%s %s: %d with %q, want %d, doubted: %t\n%s", c.method, c.path, recorder.Code, doubts, c.status, c.doubted, recorder.Body)
		}
	}
	recorder := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/_batch", strings.NewReader(in("none")))
	r.Header.Set("Content-Type", "application/json")
	s.ServeHTTP(recorder, r)
	if recorder.Code != http.StatusBadRequest || !strings.Contains(recorder.Body.String(), "syncs it to zone zone-1; "+doubt) {
		t.Errorf("a mesh that the global may have: %d %s", recorder.Code, recorder.Body)
	}
}

// TestDoubtsAreOfWhatIsAsked checks of which type an answer of a zone depends on its global: a doubt about another type is
// none.
func TestDoubtsAreOfWhatIsAsked(t *testing.T) {
	const anything = resources.Type("anything")
	s := New(Config{Store: store.NewMemory(), Home: resources.Home{Zone: "zone-1"},
		Outdated: func(ofGlobal bool, of resources.Type) []string {
			if !ofGlobal {
				return nil
			}
			return []string{string(cmp.Or(of, anything))}
		}})
	for path, want := range map[string]resources.Type{
		"/meshes":                         resources.TypeMesh,
		"/meshtimeouts":                   resources.TypeMeshTimeout,
		"/meshservices":                   resources.TypeMeshService,
		"/dataplanes":                     "",
		"/meshes/none/meshtimeouts":       anything, // there is no such mesh
		"/meshes/default/meshtimeouts/no": anything,
		"/global-insight":                 anything,
		"/who-am-i":                       "",
	} {
		recorder := httptest.NewRecorder()
		s.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
		if doubts := warningsIn(recorder.Header()); (want != "" || len(doubts) > 0) && (len(doubts) != 1 || doubts[0] != string(want)) {
			t.Errorf("%s: %d with %q, want %q", path, recorder.Code, doubts, want)
		}
	}
}
