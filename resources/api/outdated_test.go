package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
	var since time.Time
	s := New(Config{Store: store.NewMemory(), Home: resources.Home{}, Page: plainPage{},
		Outdated: func() (time.Time, string) { return since, "etcd does not answer" }})
	client := httptest.NewServer(s)
	t.Cleanup(client.Close)
	var said []string
	c, err := NewClient(ClientConfig{Address: client.URL, Warned: func(_, text string) { said = append(said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{{}, time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)} {
		since, said = at, nil
		if _, err := c.Do(t.Context(), Request{Path: "/meshes"}); err != nil {
			t.Fatal(err)
		}
		if warned := len(said) == 1 && strings.Contains(said[0], "since 2026-11-20T10:00:00Z is unknown"); warned == at.IsZero() {
			t.Errorf("a list since %s: %q", at, said)
		}
		recorder := httptest.NewRecorder()
		s.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/meshes/none", http.NoBody))
		if got := recorder.Header().Get(WarningHeader); recorder.Code != http.StatusNotFound || (got != "") == at.IsZero() {
			t.Errorf("what is not there since %s: %d, %q", at, recorder.Code, got)
		}
		page := httptest.NewRecorder()
		s.ServeHTTP(page, httptest.NewRequest(http.MethodGet, pagePath, http.NoBody))
		if got := page.Header().Get(WarningHeader); page.Code != http.StatusOK || got != "" {
			t.Errorf("the page since %s: %d, %q", at, page.Code, got)
		}
	}
}
