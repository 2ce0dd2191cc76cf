package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// answer returns the response that a plain HTTP client gets.
func answer(t *testing.T, method, url, body string) (*http.Response, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/yaml")
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return resp, out
}

// TestWritesAreAnsweredWithTheirRevision checks the revision in the header and in the body.
func TestWritesAreAnsweredWithTheirRevision(t *testing.T) {
	f := alone(t)
	path := f.url + "/meshes/default/meshtrafficpermissions/p"
	for _, c := range []struct{ method, url, body string }{
		{"PUT", path, permission("p")},
		{"PUT", path, permission("p")}, // unchanged: the store already has it
		{"POST", f.url + "/_batch", permission("q")},
		{"DELETE", path, ""},
	} {
		resp, out := answer(t, c.method, c.url, c.body)
		now := f.store.Snapshot().Revision()
		if got := resp.Header.Get(api.RevisionHeader); got != strconv.FormatUint(now, 10) {
			t.Errorf("%s %s: header %q, the store is at %d", c.method, c.url, got, now)
		}
		if out["revision"] != float64(now) {
			t.Errorf("%s %s: body %v, the store is at %d", c.method, c.url, out, now)
		}
	}
	if resp, _ := answer(t, "PUT", path, "type: Mesh"); resp.Header.Get(api.RevisionHeader) != "" {
		t.Error("a refused write has a revision")
	}
	if resp, _ := answer(t, "GET", f.url+"/meshes/default", ""); resp.Header.Get(api.RevisionHeader) != "" {
		t.Error("a read has a revision")
	}
}

// TestReadsWaitForARevision checks a revision that arrives, one that does not, and a malformed one.
func TestReadsWaitForARevision(t *testing.T) {
	s := store.NewMemory()
	srv := httptest.NewServer(api.New(api.Config{Store: s, RevisionWait: 50 * time.Millisecond}))
	defer srv.Close()
	if err := api.EnsureDefaultMesh(t.Context(), s, resources.Home{}); err != nil {
		t.Fatal(err)
	}
	now := s.Snapshot().Revision()
	if resp, out := answer(t, "GET", srv.URL+"/meshes/default?revision="+strconv.FormatUint(now, 10),
		""); resp.StatusCode != http.StatusOK {
		t.Errorf("a revision that is there: %v", out)
	}
	resp, out := answer(t, "GET", srv.URL+"/meshes?revision="+strconv.FormatUint(now+1, 10), "")
	if resp.StatusCode != http.StatusGatewayTimeout || !strings.Contains(out["detail"].(string), "did not reach") {
		t.Errorf("a revision that does not come: %d %v", resp.StatusCode, out)
	}
	if resp, out := answer(t, "GET", srv.URL+"/meshes?revision=soon", ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("no revision: %d %v", resp.StatusCode, out)
	}
}

// TestReadWaitsForAnotherReplica checks that a client that wrote on one server reads its write on another one that is
// behind.
func TestReadWaitsForAnotherReplica(t *testing.T) {
	home := resources.Home{Zone: "zone-1", Alone: true}
	first, late := serve(t, home), store.NewMemory()
	replica := httptest.NewServer(api.New(api.Config{Store: late, Home: home, RevisionWait: time.Minute}))
	defer replica.Close()
	put := resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default", Name: "p"}
	r, err := resources.DecodeDocuments([]byte(permission("p")), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := first.client.Apply(t.Context(), r...)
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient(api.ClientConfig{Address: replica.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	client.AtLeast(result.Revision)
	found := make(chan error, 1)
	go func() {
		_, err := client.Get(context.Background(), put)
		found <- err
	}()
	for _, k := range []resources.Key{{Type: resources.TypeMesh, Name: "default"}, put} {
		if _, err := late.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: first.store.Snapshot().Get(k)}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-found; err != nil {
		t.Error(err)
	}
}

// down is a store that cannot write.
type down struct {
	*store.Memory
	err error
}

func (d *down) Apply(context.Context, store.Batch) (*store.Commit, error) { return nil, d.err }

// TestStoreThatCannotWrite checks that writes fail at once with a time to retry, and that reads continue.
func TestStoreThatCannotWrite(t *testing.T) {
	s := &down{Memory: store.NewMemory(), err: store.ErrUnavailable}
	srv := httptest.NewServer(api.New(api.Config{Store: s, Home: resources.Home{Zone: "zone-1", Alone: true}}))
	defer srv.Close()
	for _, c := range []struct {
		err  error
		says string
	}{
		{store.ErrUnavailable, "nothing was stored, try again"},
		{fmt.Errorf("%w (%w)", store.ErrUnavailable, syscall.ENOSPC), "nothing was stored: free space on the server's disk"},
		{fmt.Errorf("%w (%w)", store.ErrUnavailable, syscall.EDQUOT), "nothing was stored: free space on the server's disk"},
		{errors.Join(store.ErrUnavailable, store.ErrUncertain), "read it again"},
	} {
		s.err = c.err
		resp, out := answer(t, "POST", srv.URL+"/_batch", permission("p"))
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" ||
			!strings.Contains(out["detail"].(string), c.says) {
			t.Errorf("%v: %d %v", c.err, resp.StatusCode, out)
		}
		if full := strings.Contains(c.says, "free space"); full && strings.Contains(out["detail"].(string), "try again") {
			t.Errorf("%v: what does not help is advised: %v", c.err, out)
		}
	}
	if resp, out := answer(t, "GET", srv.URL+"/meshes", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("a read: %v", out)
	}
}
