package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
)

// failing is a store whose disk is full while full is set.
type failing struct {
	*store.Memory

	full bool
}

func (f *failing) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	if f.full {
		return nil, errors.New("the disk is full")
	}
	return f.Memory.Apply(ctx, b)
}

// TestDeletionsOutliveAFullDisk deletes an object while the store takes nothing.
func TestDeletionsOutliveAFullDisk(t *testing.T) {
	g := newRig(t)
	disk := &failing{Memory: g.store}
	g.Routes = api.New(api.Config{Store: disk, Home: g.Home})
	g.list(permission("u", 1, nil, true))
	disk.full = true
	g.sink().Deleted(permission("u", 1, nil, true))
	g.settled()
	g.holds("default shop/web u/1")
	disk.full = false
	g.settled()
	g.holds()
}

// TestAcceptanceIsUsedUpByWhatItAccepts accepts deletions that the store does not take at first, and looks whether the
// operator's word lasts until they are done, and no longer.
func TestAcceptanceIsUsedUpByWhatItAccepts(t *testing.T) {
	var accepted atomic.Bool
	client := connectedTo(t, func(w http.ResponseWriter, r *http.Request) {
		annotation := ""
		if accepted.Load() {
			annotation = AnnotationAcceptDeletions
		}
		if r.Method == http.MethodPatch {
			raw, _ := io.ReadAll(r.Body)
			accepted.Store(!strings.Contains(string(raw), AnnotationAcceptDeletions+`":null`))
		}
		// The definition is younger than the objects, which went with the one before.
		fmt.Fprintf(w, `{"metadata": {"name": "it", "creationTimestamp": "2025-12-01T00:00:00Z", "annotations": {%q: "yes"}}}`, annotation)
	})
	g := newRigWith(t, client)
	disk := &failing{Memory: g.store}
	g.Routes = api.New(api.Config{Store: disk, Home: g.Home})
	g.list(permission("u", 1, nil, true), permissionIn("bank", "v", 1, nil, true))
	g.sink().Deleted(permission("u", 1, nil, true))
	g.settled()
	g.holds("default bank/web v/1", "default shop/web u/1")
	accepted.Store(true)
	disk.full = true
	g.settled()
	if !accepted.Load() {
		t.Fatal("the operator's word is gone, and nothing is deleted")
	}
	disk.full = false
	g.settled()
	g.holds("default bank/web v/1")
	if accepted.Load() {
		t.Fatal("the operator's word outlives what it was about")
	}

	// A word that came before the deletion is used up by it, too.
	accepted.Store(true)
	g.sink().Deleted(permissionIn("bank", "v", 1, nil, true))
	g.settled()
	g.holds()
	if accepted.Load() {
		t.Fatal("the operator's word outlives what it was about")
	}
}

// TestSecretPathIsWhole starts with what a crash left of the file of the webhook's secret.
func TestSecretPathIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), secretFile)
	for _, left := range []string{"", "a", "abc123", strings.Repeat("Z", 2*secretBytes)} {
		must(t, os.WriteFile(path, []byte(left), 0o600))
		made, err := readOrCreateSecret(path)
		must(t, err)
		if len(made) != 2*secretBytes || made == left {
			t.Errorf("after %q the secret is %q", left, made)
		}
		if again, err := readOrCreateSecret(path); err != nil || again != made {
			t.Errorf("a restart makes another secret: %q after %q, %v", again, made, err)
		}
	}
}

// TestDefinitionMadeAgainWithinASecond restarts after a definition was deleted, with its objects, and made again in the
// second in which the objects were made. A user's deletion before the server's eyes is another matter.
func TestDefinitionMadeAgainWithinASecond(t *testing.T) {
	g := newRigWith(t, connectedTo(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"metadata": {"name": "it", "creationTimestamp": "2025-01-01T00:00:00Z"}}`)
	}))
	g.list(permission("u", 1, nil, true), permissionIn("bank", "v", 1, nil, true))
	g.sink().Deleted(permissionIn("bank", "v", 1, nil, true))
	g.settled()
	g.holds("default shop/web u/1")
	g.reset(g.store)
	g.list()
	g.holds("default shop/web u/1")
}
