package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/api"
)

// TestWatchWaitsForAChangeOfItsType: a list with a revision answers when one of its type and mesh changes, and not for
// others.
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

// TestWatchIsWokenByAWrite: the answer comes with the write, not at the end of the wait.
func TestWatchIsWokenByAWrite(t *testing.T) {
	t.Parallel()
	f := serveConfig(t, api.Config{WatchWait: time.Minute})
	const path = "/meshes/default/meshtrafficpermissions"
	revision, _ := f.store.Changed()
	answers := make(chan string, 1)
	go func() {
		out, _ := f.call(t, "GET", fmt.Sprintf("%s?watch=%d", path, revision), "")
		answers <- out
	}()
	f.mustCall(t, "PUT", path+"/p", permission("p"))
	select {
	case got := <-answers:
		if !strings.Contains(got, `"p"`) {
			t.Errorf("the answer is %q", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the write did not wake the watch")
	}
}

// TestWatchOfAMeshThatIsGone: a list that waits says so when its mesh is deleted, also where nothing was in it.
func TestWatchOfAMeshThatIsGone(t *testing.T) {
	t.Parallel()
	f := serveConfig(t, api.Config{WatchWait: time.Minute})
	f.mustCall(t, "PUT", "/meshes/other", "type: Mesh\nname: other\n")
	revision, _ := f.store.Changed()
	answers := make(chan *api.Error, 1)
	go func() {
		_, err := f.call(t, "GET", fmt.Sprintf("/meshes/other/meshtimeouts?watch=%d", revision), "")
		answers <- err
	}()
	f.mustCall(t, "DELETE", "/meshes/other", "")
	select {
	case err := <-answers:
		if err == nil || err.Status != 404 {
			t.Errorf("the answer is %v, want 404", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the deletion of its mesh did not wake the watch")
	}
}

// TestWatchWaitsForWhatAnotherReplicaTold: a revision that is not here yet is waited for, so that nobody is shown what
// was before it as if it were news.
func TestWatchWaitsForWhatAnotherReplicaTold(t *testing.T) {
	t.Parallel()
	f := serveConfig(t, api.Config{WatchWait: time.Minute})
	const path = "/meshes/default/meshtrafficpermissions"
	revision, _ := f.store.Changed()
	answers := make(chan string, 1)
	go func() {
		out, _ := f.call(t, "GET", fmt.Sprintf("%s?watch=%d", path, revision+1), "")
		answers <- out
	}()
	f.mustCall(t, "PUT", path+"/p", permission("p")) // the revision that was told
	f.mustCall(t, "PUT", path+"/q", permission("q"))
	select {
	case got := <-answers:
		if !strings.Contains(got, `"q"`) {
			t.Errorf("the answer is %q, which is from before the revision", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the change after the revision did not wake the watch")
	}
}

// TestDrainEndsWatches: who waits for a change does not make a server that stops wait.
func TestDrainEndsWatches(t *testing.T) {
	t.Parallel()
	var server *api.Server
	f := serveConfig(t, api.Config{WatchWait: time.Minute}, func(s *api.Server) { server = s })
	revision, _ := f.store.Changed()
	answers := make(chan string, 1)
	go func() {
		out, err := f.call(t, "GET", fmt.Sprintf("/meshtrafficpermissions?watch=%d", revision), "")
		answers <- fmt.Sprint(out, err)
	}()
	server.Drain()
	server.Drain()
	select {
	case got := <-answers:
		if got != "<nil>" {
			t.Errorf("the answer is %q, want none", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the watch goes on")
	}
}
