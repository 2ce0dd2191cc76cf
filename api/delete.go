package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

const titleDelete = "Could not delete a resource"

// Deleted is the response to `DELETE` of one resource. Revision is the store's revision of the deletion.
type Deleted struct {
	Revision uint64 `json:"revision"`
}

// delete handles DELETE. It responds with 200 and the revision of the deletion.
func (s *Server) delete(w http.ResponseWriter, r *http.Request) error {
	d, err := descriptorOf(r)
	if err != nil {
		return err
	}
	key, err := keyOf(r, d)
	if err != nil {
		return err
	}
	if err := s.judge(r, resources.VerbDelete, key, s.config.Store.Snapshot().Get(key)); err != nil {
		return err
	}
	if err := s.deletedByKubectl(s.config.Store.Snapshot().Get(key)); err != nil {
		return err
	}
	want, err := preconditionOf(r)
	if err != nil {
		return err
	}
	reader := s.Reader(r)
	check := func(state store.Snapshot) error {
		if err := s.checkDelete(state, d, key, reader); err != nil {
			return err
		}
		return s.checkWithdrawal(r.Context(), state, key)
	}
	batch := store.Batch{Ops: deleteOps(s.config.Store.Snapshot(), key), Check: want.onlyIf(key, check),
		Cause: store.CauseOf(r.Context())}
	if err := s.intendBatch(r.Context(), batch); err != nil {
		return err
	}
	commit, err := s.config.Store.Apply(r.Context(), batch)
	if err != nil {
		return err
	}
	noteCommit(r.Context(), commit)
	return WriteJSON(w, http.StatusOK, Deleted{Revision: commit.Revision})
}

// deleteOps deletes a resource and, with a mesh, its initial policies.
func deleteOps(snap store.Snapshot, key resources.Key) []store.Op {
	var out []store.Op
	if key.Type == resources.TypeMesh {
		for _, policy := range resources.InitialKeys(key.Name) {
			if snap.Get(policy) != nil {
				out = append(out, store.Op{Delete: policy})
			}
		}
	}
	return append(out, store.Op{Delete: key})
}

// checkDelete checks a deletion. It runs under the write lock.
func (s *Server) checkDelete(state store.Snapshot, d *resources.Descriptor, key resources.Key, reader *Reader) error {
	old := state.Get(key)
	if old != nil {
		if invalid := s.checkOwner(old); invalid != nil {
			return invalid
		}
	}
	if !s.config.Home.MayWrite(d) {
		return s.notHere(d)
	}
	if old == nil {
		e := NotFound(key.String())
		e.Title = titleDelete
		return e
	}
	switch d.Type {
	case resources.TypeMesh:
		return checkMeshUnused(state, key.Name, reader)
	case resources.TypeZone:
		return s.checkZoneOffline(key.Name)
	}
	return nil
}

// mostNamed bounds the resources that an error names as blocking a deletion.
const mostNamed = 5

// checkMeshUnused refuses to delete a mesh that still has resources, its own or copies. A MeshTrust that a zone
// publishes automatically does not block it, and its initial policies are deleted with it. Resources that the caller
// may not read are counted but not named.
func checkMeshUnused(state store.Snapshot, mesh string, reader *Reader) error {
	var named []string
	more, hidden := 0, 0
	for _, d := range resources.Descriptors() {
		if d.Scope != resources.ScopeMesh {
			continue
		}
		for r := range state.List(store.Query{Type: d.Type, Mesh: mesh}) {
			switch {
			case r.Type == resources.TypeMeshTrust && resources.IsZoneTrustName(r.DisplayName(), r.Zone()):
			case slices.Contains(resources.InitialKeys(mesh), r.Key):
			case !reader.May(r):
				hidden++
			case len(named) < mostNamed:
				named = append(named, r.Key.String())
			default:
				more++
			}
		}
	}
	if len(named)+hidden == 0 {
		return nil
	}
	if more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	if hidden > 0 {
		named = append(named, fmt.Sprintf("%d that you may not read", hidden))
	}
	return NewError(http.StatusBadRequest, titleDelete, "the mesh is not empty: delete its contents first").
		WithField("mesh", "in it: %s", strings.Join(named, ", "))
}

// checkZoneOffline refuses to delete a connected zone, because it would register itself again.
func (s *Server) checkZoneOffline(zone string) error {
	insight := s.view().get(resources.Key{Type: resources.TypeZoneInsight, Name: zone})
	if insight == nil || !zoneOnline(insight) {
		return nil
	}
	return NewError(http.StatusBadRequest, titleDelete, "the zone is connected: stop its server first").
		WithField("name", "%s", "zone "+zone+" is connected: causewayctl zone delete ends its session first")
}

// zoneOnline reports whether any subscription of a ZoneInsight is open.
func zoneOnline(insight *resources.Resource) bool {
	spec, err := resources.SpecAs[systempb.ZoneInsight](insight)
	if err != nil {
		return false
	}
	for _, subscription := range spec.GetSubscriptions() {
		if subscription.GetDisconnectTime() == nil {
			return true
		}
	}
	return false
}
