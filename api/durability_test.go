package api_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
)

// TestFailingSyncIsA5xxThatNobodySees checks that a write that the disk refuses, before or after the pages are written,
// gets a 5xx and is never visible to a reader.
func TestFailingSyncIsA5xxThatNobodySees(t *testing.T) {
	for name, commit := range map[string]func(*bbolt.Tx) error{
		"before": func(tx *bbolt.Tx) error { return errors.Join(tx.Rollback(), errors.New("fsync: input/output error")) },
		"after":  func(tx *bbolt.Tx) error { return errors.Join(tx.Commit(), errors.New("fsync: input/output error")) },
	} {
		t.Run(name, func(t *testing.T) {
			var failing atomic.Bool
			s, err := bolt.Open(context.Background(), bolt.Config{Path: filepath.Join(t.TempDir(), "db"),
				Commit: func(tx *bbolt.Tx) error {
					if failing.Load() {
						return commit(tx)
					}
					return tx.Commit()
				}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if err := api.EnsureDefaultMesh(context.Background(), s, resources.Home{}); err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(api.New(api.Config{Store: s, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}))
			t.Cleanup(server.Close)
			const path = "/meshes/default/meshtrafficpermissions/p"
			call := func(method, body string) int {
				req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := server.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				return resp.StatusCode
			}
			const body = `{"type":"MeshTrafficPermission","mesh":"default","name":"p","spec":{"default":{}}}`
			revision := s.Snapshot().Revision()
			failing.Store(true)
			if got := call(http.MethodPut, body); got != http.StatusServiceUnavailable {
				t.Errorf("PUT while the disk fails: got %d, want 503", got)
			}
			if got := call(http.MethodGet, ""); got != http.StatusNotFound || s.Snapshot().Revision() != revision {
				t.Errorf("GET after a refused write: got %d at revision %d, want 404 at %d", got, s.Snapshot().Revision(), revision)
			}
			failing.Store(false)
			if got := call(http.MethodGet, ""); got != http.StatusNotFound {
				t.Errorf("GET once the disk is well: got %d, want 404", got)
			}
			if got := call(http.MethodPut, body); got != http.StatusCreated {
				t.Errorf("PUT once the disk is well: got %d, want 201", got)
			}
		})
	}
}
