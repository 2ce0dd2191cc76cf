package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// lookedAt counts how often the changes of a store are asked for.
type lookedAt struct {
	store.Store

	looks atomic.Int64
}

func (l *lookedAt) Changes(since uint64) ([]*store.Commit, bool) {
	l.looks.Add(1)
	return l.Store.Changes(since)
}

// overviewsOver serves a store, and a live status of its own in which one zone has the session.
func overviewsOver(t *testing.T, stored store.Store, wait time.Duration, session string) (*api.Server, *fixture, *lookedAt) {
	t.Helper()
	status := store.NewMemory()
	live, f := &lookedAt{Store: status}, &fixture{status: status}
	f.connect(t, "east", session)
	return api.New(api.Config{Store: stored, Status: live, WatchWait: wait}), f, live
}

func askOverviews(ctx context.Context, t *testing.T, s http.Handler, watch string) (code int, revision string) {
	t.Helper()
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/zones/_overview?watch="+watch, nil).WithContext(ctx))
	var list struct {
		Revision string `json:"revision"`
	}
	if rec.Code == http.StatusOK {
		if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil {
			t.Errorf("%s: %v", rec.Body, err)
		}
	}
	return rec.Code, list.Revision
}

// TestWatchOfOverviewsNoticesAnotherProcess: a page that was open while its server started again is told who is connected
// now, though the live status has as many commits as before.
func TestWatchOfOverviewsNoticesAnotherProcess(t *testing.T) {
	t.Parallel()
	stored := store.NewMemory()
	if err := api.EnsureDefaultMesh(t.Context(), stored, resources.Home{}); err != nil {
		t.Fatal(err)
	}
	before, _, _ := overviewsOver(t, stored, 300*time.Millisecond, `{id: "1", connectTime: "2026-01-01T00:00:00Z"}`)
	_, at := askOverviews(t.Context(), t, before, "0")
	time.Sleep(time.Millisecond) // processes do not start within one microsecond
	after, _, _ := overviewsOver(t, stored, 300*time.Millisecond, `{id: "1", connectTime: "2026-01-01T00:00:00Z", disconnectTime: "2026-01-01T00:01:00Z"}`)
	if code, now := askOverviews(t.Context(), t, after, at); code != http.StatusOK || now == at {
		t.Errorf("the answer to %s is %d with %q, want one with another revision", at, code, now)
	}
	if code, _ := askOverviews(t.Context(), t, before, at); code != http.StatusNoContent {
		t.Errorf("nothing has changed, the answer is %d", code)
	}
}

// TestWatchOfOverviewsRestsBetweenLooks: counters, which proxies and zones report all the time, make a watch look a few
// times a second, however many reports there are.
func TestWatchOfOverviewsRestsBetweenLooks(t *testing.T) {
	t.Parallel()
	stored := store.NewMemory()
	if err := api.EnsureDefaultMesh(t.Context(), stored, resources.Home{}); err != nil {
		t.Fatal(err)
	}
	server, f, live := overviewsOver(t, stored, 5*time.Minute, `{id: "1", connectTime: "2026-01-01T00:00:00Z"}`)
	_, at := askOverviews(t.Context(), t, server, "0")
	began, answered := time.Now(), make(chan int, 1)
	go func() {
		code, _ := askOverviews(context.Background(), t, server, at)
		answered <- code
	}()
	const reports = 400
	for n := range reports {
		f.connect(t, "east", fmt.Sprintf(`{id: "1", connectTime: "2026-01-01T00:00:00Z", status: {total: {responsesSent: %d}}}`, n+1))
		time.Sleep(time.Millisecond)
	}
	f.connect(t, "east", `{id: "2", connectTime: "2026-01-01T00:02:00Z"}`)
	select {
	case code := <-answered:
		if code != http.StatusOK {
			t.Errorf("somebody has connected, the answer is %d", code)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing wakes the watch")
	}
	if most := 3 + time.Since(began).Milliseconds()/200; live.looks.Load() > most {
		t.Errorf("%d reports made a watch look %d times, want at most %d", reports, live.looks.Load(), most)
	}
}
