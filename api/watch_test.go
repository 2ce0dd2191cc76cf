package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
)

// TestWatchWaitsForAChangeOfItsType checks that a list with a revision answers at a change of its type and mesh, and
// not at others.
func TestWatchWaitsForAChangeOfItsType(t *testing.T) {
	t.Parallel()
	f := serveConfig(t, api.Config{WatchWait: 300 * time.Millisecond})
	const path = "/meshes/default/meshtrafficpermissions"
	revision := func(body string) string {
		t.Helper()
		var page struct {
			Revision uint64 `json:"revision"`
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil || page.Revision == 0 {
			t.Fatalf("no revision in %q: %v", body, err)
		}
		return fmt.Sprint(page.Revision)
	}
	at := revision(f.mustCall(t, "GET", path+"?watch=0", ""))
	if got := f.mustCall(t, "GET", path+"?watch="+at, ""); got != "" {
		t.Errorf("nothing has changed, the answer is %q", got)
	}
	f.mustCall(t, "PUT", "/meshes/other", "type: Mesh\nname: other\n")
	f.mustCall(t, "PUT", "/meshes/other/meshtrafficpermissions/p", strings.ReplaceAll(permission("p"), "default\n", "other\n"))
	if got := f.mustCall(t, "GET", path+"?watch="+at, ""); got != "" {
		t.Errorf("another mesh has changed, the answer is %q", got)
	}
	f.mustCall(t, "PUT", path+"/p", permission("p"))
	got := f.mustCall(t, "GET", path+"?watch="+at, "")
	if !strings.Contains(got, `"p"`) {
		t.Errorf("a permission was added, the answer is %q", got)
	}
	at = revision(got)
	f.mustCall(t, "DELETE", path+"/p", "")
	if got := f.mustCall(t, "GET", path+"?watch="+at, ""); !strings.Contains(got, `"total": 0`) {
		t.Errorf("it was deleted, the answer is %q", got)
	}
	if got := f.mustCall(t, "GET", path+"?watch=999999", ""); !strings.Contains(got, `"total": 0`) {
		t.Errorf("a revision of another store: the answer is %q", got)
	}
	for query, want := range map[string]string{
		path + "?watch=x":         "want the revision of an earlier answer",
		"/zone-insights?watch=1":  "is not stored",
		"/meshes/default?watch=1": "takes no query parameter",
	} {
		if _, err := f.call(t, "GET", query, ""); err == nil || err.Status != 400 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want 400 and %q", query, err, want)
		}
	}
}

// watch requests a list with a revision, and returns a function that waits for the answer.
func (f *fixture) watch(t *testing.T, path string, revision uint64) (woken func() (string, *api.Error)) {
	t.Helper()
	return f.watchText(t, path, fmt.Sprint(revision))
}

// watchText is watch for a revision as lists of overviews have it.
func (f *fixture) watchText(t *testing.T, path, revision string) (woken func() (string, *api.Error)) {
	t.Helper()
	type answer struct {
		body string
		err  *api.Error
	}
	answers := make(chan answer, 1)
	go func() {
		body, err := f.call(t, "GET", path+"?watch="+revision, "")
		answers <- answer{body, err}
	}()
	return func() (string, *api.Error) {
		t.Helper()
		select {
		case got := <-answers:
			return got.body, got.err
		case <-time.After(20 * time.Second):
			t.Fatal("nothing wakes the watch")
			return "", nil
		}
	}
}

// TestWatchIsWokenByAWrite checks that the answer comes with the write, not at the end of the wait.
func TestWatchIsWokenByAWrite(t *testing.T) {
	t.Parallel()
	f := serveConfig(t, api.Config{WatchWait: time.Minute})
	const path = "/meshes/default/meshtrafficpermissions"
	revision, _ := f.store.Changed()
	woken := f.watch(t, path, revision)
	f.mustCall(t, "PUT", path+"/p", permission("p"))
	if got, err := woken(); err != nil || !strings.Contains(got, `"p"`) {
		t.Errorf("the answer is %q, %v", got, err)
	}
}

// TestWatchOfAMeshThatIsGone checks that a waiting list returns 404 when its mesh, even an empty one, is deleted.
func TestWatchOfAMeshThatIsGone(t *testing.T) {
	t.Parallel()
	f := serveConfig(t, api.Config{WatchWait: time.Minute})
	f.mustCall(t, "PUT", "/meshes/other", "type: Mesh\nname: other\n")
	revision, _ := f.store.Changed()
	woken := f.watch(t, "/meshes/other/meshtimeouts", revision)
	f.mustCall(t, "DELETE", "/meshes/other", "")
	if got, err := woken(); err == nil || err.Status != 404 {
		t.Errorf("the answer is %q, %v, want 404", got, err)
	}
}

// TestWatchWaitsForWhatAnotherReplicaTold checks that a list waits for a revision that has not arrived, so that nobody
// gets older state as news.
func TestWatchWaitsForWhatAnotherReplicaTold(t *testing.T) {
	t.Parallel()
	f := serveConfig(t, api.Config{WatchWait: time.Minute})
	const path = "/meshes/default/meshtrafficpermissions"
	revision, _ := f.store.Changed()
	woken := f.watch(t, path, revision+1)
	f.mustCall(t, "PUT", path+"/p", permission("p")) // the awaited revision
	f.mustCall(t, "PUT", path+"/q", permission("q"))
	if got, err := woken(); err != nil || !strings.Contains(got, `"q"`) {
		t.Errorf("the answer is %q, %v, want one from after the revision", got, err)
	}
}

// TestDrainEndsWatches checks that waiting lists do not delay a server that stops.
func TestDrainEndsWatches(t *testing.T) {
	t.Parallel()
	var server *api.Server
	f := serveConfig(t, api.Config{WatchWait: time.Minute}, func(s *api.Server) { server = s })
	revision, _ := f.store.Changed()
	woken := f.watch(t, "/meshtrafficpermissions", revision)
	server.Drain()
	server.Drain()
	if got, err := woken(); err != nil || got != "" {
		t.Errorf("the answer is %q, %v, want none", got, err)
	}
}
