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
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
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
// operator's acceptance lasts until they are done, and no longer.
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

// TestListsDeleteNothing loses sight of the API server, which then has next to nothing of what it had: as after it was
// restored from a backup. What is gone unseen is judged as after a restart.
func TestListsDeleteNothing(t *testing.T) {
	g := newRig(t)
	var all []*apiserver.Object
	for i := range minMass + 3 {
		all = append(all, permissionIn(fmt.Sprintf("ns-%02d", i), fmt.Sprint("u", i), 1, nil, true))
	}
	g.list(all...)
	was := g.names()
	g.sink().Replace(all[:1])
	g.settled()
	g.holds(was...)
	if held := len(g.kinds[resources.TypeMeshTrafficPermission].held); held != len(all)-1 {
		t.Errorf("%d deletions are held, want %d", held, len(all)-1)
	}

	g = newRig(t)
	g.list(all...)
	g.sink().Replace(all[1:])
	g.settled()
	g.holds(was[1:]...)
}

// TestListWhileTheFeedIsBusy lists while an object waits for the feed that is not there any more.
func TestListWhileTheFeedIsBusy(t *testing.T) {
	g := newRig(t)
	g.list()
	g.sink().Changed(permission("u", 1, nil, true))
	g.sink().Replace(nil)
	g.settled()
	g.holds()
}

// TestListWhileComparing lists between the end of the feed and the comparison: nobody has read the list yet.
func TestListWhileComparing(t *testing.T) {
	g := newRig(t)
	g.list(permission("u", 1, nil, true))
	g.sink().Replace(nil)
	g.compareAll(t.Context())
	g.settled()
	g.holds()
}

// TestAcceptanceThatStays accepts deletions of which the server cannot remove the annotation: it says nothing about later
// ones, until it is removed and set again.
func TestAcceptanceThatStays(t *testing.T) {
	var accepted, stuck atomic.Bool
	client := connectedTo(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			if stuck.Load() {
				http.Error(w, "{}", http.StatusForbidden)
				return
			}
			accepted.Store(false)
		}
		annotation := ""
		if accepted.Load() {
			annotation = AnnotationAcceptDeletions
		}
		fmt.Fprintf(w, `{"metadata": {"name": "it", "creationTimestamp": "2025-12-01T00:00:00Z", "annotations": {%q: "yes"}}}`, annotation)
	})
	g := newRigWith(t, client)
	g.list(permission("u", 1, nil, true), permissionIn("bank", "v", 1, nil, true))
	accepted.Store(true)
	stuck.Store(true)
	g.sink().Deleted(permission("u", 1, nil, true))
	g.settled()
	g.holds("default bank/web v/1")
	g.sink().Deleted(permissionIn("bank", "v", 1, nil, true))
	g.settled()
	g.holds("default bank/web v/1")
	stuck.Store(false)
	g.settled()
	g.holds("default bank/web v/1")
	if accepted.Load() {
		t.Fatal("the annotation stays")
	}
	accepted.Store(true)
	g.settled()
	g.holds()
}

// TestSweepsComeToTheirEnd looks at many objects while something happens all the time.
func TestSweepsComeToTheirEnd(t *testing.T) {
	g := newRig(t)
	pulse := 0
	g.Pulse = func() string { pulse++; return fmt.Sprint(pulse) }
	k := g.kinds[resources.TypeMeshTrafficPermission]
	for i := range 4 * maxSweep {
		k.objects[apiserver.Name{Namespace: "shop", Name: fmt.Sprint(i)}] = &objectState{uid: fmt.Sprint(i)}
	}
	seen := map[objectID]bool{}
	s := sweep{bridge: g.Bridge}
	for range 4 {
		s.step()
		for _, id := range g.takeDue() {
			seen[id] = true
		}
	}
	if len(seen) != len(k.objects) {
		t.Errorf("%d of %d objects had their turn", len(seen), len(k.objects))
	}
	s.rest(time.Hour)
	if swept := s.step(); swept || len(g.takeDue()) > 0 {
		t.Error("a sweep that took long does not rest")
	}
}

// TestUnguardedPatches: an editor of a namespace lacks the right unguard, and Kubernetes is not asked for it.
func TestUnguardedPatches(t *testing.T) {
	for namespace, want := range map[string]bool{"shop": false, resources.DefaultSystemNamespace: true} {
		g := newRig(t)
		g.list()
		raw := fmt.Appendf(nil, `{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshProxyPatch", "metadata": {"name": "open", "namespace": %q, "uid": "u",
"generation": 1, "resourceVersion": "1", "labels": {"causeway.io/unguarded": "true"}}, "spec": {"default": {"appendModifications": [
{"httpFilter": {"operation": "Remove", "match": {"origin": "inbound", "name": "x"}}}]}}}`, namespace)
		asked := &admissionRequest{Operation: operationCreate, Namespace: namespace, Name: "open", Object: raw}
		asked.Kind.Group, asked.Kind.Kind = group, "MeshProxyPatch"
		answer := g.judge(t.Context(), asked, false)
		if answer.Allowed != want || !want && !strings.Contains(answer.Status.Message, "needs the right unguard") {
			t.Errorf("%s: the webhook answers %+v", namespace, answer)
		}
		o, err := apiserver.Parse(raw) // the webhook may be away
		must(t, err)
		(&sink{bridge: g.Bridge, kind: g.kinds[resources.TypeMeshProxyPatch]}).Changed(o)
		g.settled()
		key := resources.Key{Type: resources.TypeMeshProxyPatch, Mesh: "default", Namespace: namespace, Name: "open"}
		if stored := g.store.Snapshot().Get(key) != nil; stored != want {
			t.Errorf("%s: it is stored: %v", namespace, stored)
		}
	}
}
