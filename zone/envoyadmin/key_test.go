package envoyadmin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// full is a store that takes no writes, as on a full disk.
type full struct{ store.Store }

func (full) Apply(context.Context, store.Batch) (*store.Commit, error) {
	return nil, errors.New("the disk is full")
}

func newBox(t *testing.T) *secrets.Box {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func pinOf(t *testing.T, s store.Store, box *secrets.Box) string {
	t.Helper()
	key, err := OpenKey(t.Context(), secrets.NewKeeper(s, box), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return key.Pin
}

// TestKeyThatCannotBeKept: a zone that cannot store its key, or not read it, starts nevertheless. All of its servers
// have the one that is stored.
func TestKeyThatCannotBeKept(t *testing.T) {
	s, box := store.NewMemory(), newBox(t)
	if pinOf(t, full{s}, box) == "" {
		t.Error("no key where none can be stored")
	}
	stored := pinOf(t, s, box)
	if again := pinOf(t, full{s}, box); again != stored {
		t.Errorf("another server has %s, want %s", again, stored)
	}
	if other := pinOf(t, s, newBox(t)); other == "" || other == stored {
		t.Errorf("a server that cannot read it has %q", other)
	}
	if again := pinOf(t, s, box); again != stored {
		t.Errorf("the stored key is %s now, want %s", again, stored)
	}
}

// TestMatchIsAnExpression: what Envoy would not take as an expression is no reason to call the proxy unreachable.
func TestMatchIsAnExpression(t *testing.T) {
	for match, field := range map[string]string{"[": "match", "(?=x)": "match", strings.Repeat("x", maxMatch+1): "match"} {
		r := httptest.NewRequest(http.MethodGet, "/?match="+url.QueryEscape(match), nil)
		err := (&handlers{}).stats(httptest.NewRecorder(), r)
		var bad *api.Error
		if !errors.As(err, &bad) || bad.Status != 400 || len(bad.InvalidParameters) != 1 || bad.InvalidParameters[0].Field != field {
			t.Errorf("%.20s: %v", match, err)
		}
	}
}
