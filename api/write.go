package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Results of a write of one resource.
const (
	ResultCreated   = "created"
	ResultUpdated   = "updated"
	ResultUnchanged = "unchanged"
)

// maxStatusRetries bounds how often a write restarts because a status was written in between.
const maxStatusRetries = 8

// apply stores resources that a user wrote here: all of them or none. It returns the stored resources, in the order of
// docs, and the commit. Validation errors name all problems of all documents. want concerns the first document.
func (s *Server) apply(ctx context.Context, docs []*resources.Resource, want precondition) ([]*resources.Resource, *store.Commit, error) {
	if err := s.authorizePuts(ctx, s.config.Store.Snapshot(), docs); err != nil {
		return nil, nil, err
	}
	labelled, err := s.accept(s.config.Store.Snapshot(), docs)
	if err != nil {
		return nil, nil, err
	}
	for attempt := 0; ; attempt++ {
		batch, err := s.batchOf(ctx, labelled)
		if err != nil {
			return nil, nil, err
		}
		if want != (precondition{}) {
			batch.Check = want.onlyIf(labelled[0].Key, batch.Check)
		}
		if err := s.intendBatch(ctx, batch); err != nil {
			return nil, nil, err
		}
		commit, err := s.config.Store.Apply(ctx, batch)
		if errors.Is(err, store.ErrConflict) && attempt < maxStatusRetries {
			continue
		}
		noteCommit(ctx, commit)
		if err == nil {
			asStored(labelled, commit)
		}
		return labelled, commit, err
	}
}

// asStored replaces resources of a batch by what its commit stored. Who follows the store has these, so that what is read of
// them is read once. A resource that did not change stays, as does one whose spec the store holds undecoded.
func asStored(docs []*resources.Resource, commit *store.Commit) {
	changes := commit.Changes // in the order of docs
	for i, doc := range docs {
		if len(changes) > 0 && changes[0].Key() == doc.Key {
			if changes[0].New.Spec == doc.Spec {
				docs[i] = changes[0].New
			}
			changes = changes[1:]
		}
	}
}

// accept returns docs as they are to be stored. Its error names all problems of all documents.
func (s *Server) accept(state store.Snapshot, docs []*resources.Resource) ([]*resources.Resource, error) {
	failed := &resources.DocumentsError{}
	var seen map[resources.Key]int
	if len(docs) > 1 {
		seen = make(map[resources.Key]int, len(docs))
	}
	out := make([]*resources.Resource, len(docs))
	for i, doc := range docs {
		accepted, err := s.acceptOne(doc, state.Get(doc.Key))
		if first, twice := seen[doc.Key]; twice && err == nil {
			err = invalidField(doc.Key, "name", fmt.Sprintf("document %d is the same resource: give each resource once", first))
		}
		var invalid *resources.InvalidError
		switch {
		case errors.As(err, &invalid):
			invalid.Document = i + 1
			failed.Invalid = append(failed.Invalid, invalid)
		case err != nil:
			return nil, err
		default:
			if out[i] = accepted; seen != nil {
				seen[doc.Key] = i + 1
			}
		}
	}
	if len(failed.Invalid) > 0 {
		return nil, failed
	}
	return out, nil
}

// acceptOne checks a document by itself, in this order: its type is written here, the hashes that it shows are those of
// secrets of old, and it is valid. It returns the document with those secrets and its computed labels.
func (s *Server) acceptOne(doc, old *resources.Resource) (*resources.Resource, error) {
	d := doc.Descriptor()
	if !s.config.Home.MayWrite(d) {
		return nil, invalidField(doc.Key, "type", s.writtenElsewhere(d))
	}
	if d.Sensitive != nil {
		var err error
		if doc, err = resources.KeepShown(doc, old); err != nil {
			return nil, err
		}
	}
	return s.config.Home.Accept(doc)
}

// writtenElsewhere returns where resources of a type are written that cannot be written here.
func (s *Server) writtenElsewhere(d *resources.Descriptor) string {
	switch {
	case d.WrittenOn == resources.Nowhere:
		return fmt.Sprintf("the servers create every %s: it is read-only", d.Type)
	case s.config.Home.Zone == "":
		return fmt.Sprintf("a %s belongs to a zone: write it to that zone's API", d.Type)
	case d.StaysOnGlobal():
		return fmt.Sprintf("a %s exists on the global only: write it to the global's API", d.Type)
	default:
		return fmt.Sprintf("a %s is written on the global: write it to the global's API, which syncs it to zone %s", d.Type, s.config.Home.Zone)
	}
}

func invalidField(key resources.Key, field, reason string) *resources.InvalidError {
	return &resources.InvalidError{Key: key, Problems: []resources.FieldProblem{{Field: field, Reason: reason}}}
}

// batchOf keeps the status of existing resources, and adds the initial policies of new meshes. That status must not change until the batch is applied.
func (s *Server) batchOf(ctx context.Context, docs []*resources.Resource) (store.Batch, error) {
	snapshot := s.config.Store.Snapshot()
	b := store.Batch{Ops: make([]store.Op, len(docs))}
	for i, doc := range docs {
		b.Ops[i].Put = doc
		if !doc.Descriptor().HasStatus {
			continue
		}
		if old := snapshot.Get(doc.Key); old != nil && len(old.Status) > 0 {
			b.Ops[i].Put = doc.Clone()
			b.Ops[i].Put.Status = old.Status
			b.Ops[i].If = store.IfRevision(old.Revision)
		}
	}
	b.Cause = store.CauseOf(ctx)
	b.Check = func(state store.Snapshot) error { return s.checkPuts(ctx, state, docs) }
	return b, s.withInitialPolicies(snapshot, &b)
}

// checkPuts runs under the write lock. It checks that the caller may write each of the resources, that each resource's
// mesh exists or is in the batch, that none is a copy from another server, and that no namespace gets too large.
func (s *Server) checkPuts(ctx context.Context, state store.Snapshot, docs []*resources.Resource) error {
	if err := s.authorizePuts(ctx, state, docs); err != nil {
		return err
	}
	if err := s.checkGrants(ctx, state, docs); err != nil {
		return err
	}
	var brought map[string]bool
	for _, doc := range docs {
		if doc.Type == resources.TypeMesh {
			if brought == nil {
				brought = map[string]bool{}
			}
			brought[doc.Name] = true
		}
	}
	failed, tooMany := &resources.DocumentsError{}, s.checkBounds(state, docs)
	for i, doc := range docs {
		invalid := s.checkOwner(state.Get(doc.Key))
		if invalid == nil && doc.Mesh != "" && !brought[doc.Mesh] && state.Get(meshKey(doc.Mesh)) == nil {
			invalid = invalidField(doc.Key, "mesh", s.meshMissing(doc.Mesh))
		}
		if invalid == nil {
			invalid = tooMany[i]
		}
		if invalid != nil {
			invalid.Document = i + 1
			failed.Invalid = append(failed.Invalid, invalid)
		}
	}
	if len(failed.Invalid) > 0 {
		return failed
	}
	return nil
}

// UnknownMesh begins the reason for refusing the field mesh if the mesh does not exist. It may be created later.
const UnknownMesh = "unknown mesh"

// meshMissing explains how to create the missing mesh.
func (s *Server) meshMissing(mesh string) string {
	if d, _ := resources.Lookup(resources.TypeMesh); s.config.Home.MayWrite(d) {
		return fmt.Sprintf("%s %q: create it first, or in the same request", UnknownMesh, mesh)
	}
	reason := fmt.Sprintf("%s %q: create it on the global, which syncs it to zone %s", UnknownMesh, mesh, s.config.Home.Zone)
	if s.config.Outdated != nil {
		for _, text := range s.config.Outdated(true, resources.TypeMesh) {
			reason += "; " + text
		}
	}
	return reason
}

// checkOwner refuses changes of a copy. Source: Kuma's KDS, rejections.
func (s *Server) checkOwner(old *resources.Resource) *resources.InvalidError {
	if old == nil || s.config.Home.Owns(old) {
		return nil
	}
	where := "the global"
	if zone := old.Zone(); zone != "" {
		where = "zone " + zone
	}
	return invalidField(old.Key, `labels["kuma.io/origin"]`,
		fmt.Sprintf("this is a copy of %s, which lives in %s: change it there", nameOf(old), where))
}

// nameOf returns the name of r for people: its KRI, or its type and display name if it has none.
func nameOf(r *resources.Resource) string {
	if kri := resources.KRIOf(r); !kri.IsZero() {
		return kri.String()
	}
	return string(r.Type) + " " + r.DisplayName()
}

// put handles PUT. It responds with 201 for a new resource and 200 for an existing one. With `dryRun=server` it
// responds with a Forecast.
func (s *Server) put(w http.ResponseWriter, r *http.Request) error {
	d, err := descriptorOf(r)
	if err != nil {
		return err
	}
	key, err := keyOf(r, d)
	if err != nil {
		return err
	}
	if !s.config.Home.MayWrite(d) {
		return s.notHere(d)
	}
	note(r.Context(), access.EventWrite, access.On(resources.VerbUpdate, key))
	dryRun, err := wantsDryRun(r)
	if err != nil {
		return err
	}
	want, err := preconditionOf(r)
	if err != nil {
		return err
	}
	docs, done, err := s.readDocuments(w, r, false)
	defer done()
	if err != nil {
		return err
	}
	if len(docs) > 1 {
		return BadField("document", "holds %d resources, want one: POST /_batch takes several", len(docs))
	}
	if err := sameKey(docs[0].Key, key); err != nil {
		return err
	}
	if dryRun {
		return s.writeForecast(w, r, docs, want)
	}
	if err := s.writtenByKubectl(docs); err != nil {
		return err
	}
	stored, commit, err := s.apply(r.Context(), docs, want)
	if err != nil {
		return err
	}
	status, result := http.StatusOK, resultsOf(stored, commit)[0]
	if result == ResultCreated {
		status = http.StatusCreated
	}
	return WriteJSON(w, status, Written{Revision: commit.Revision, Result: result,
		Warnings: s.warningsOf(r.Context(), s.config.Store.Snapshot(), stored[0])})
}

// Written is the response to `PUT` of one resource. Revision is the store's revision of the write.
type Written struct {
	Revision uint64 `json:"revision"`
	// Result is ResultCreated, ResultUpdated or ResultUnchanged. Older servers do not send it.
	Result   string   `json:"result"`
	Warnings []string `json:"warnings,omitempty"`
}

// notHere returns the error for a write of a type that this server does not accept.
func (s *Server) notHere(d *resources.Descriptor) error {
	reason := s.writtenElsewhere(d)
	return NewError(http.StatusMethodNotAllowed, "Method not allowed", reason).WithField("type", "%s", reason)
}

// sameKey checks that the key in the body matches the URL.
func sameKey(body, url resources.Key) error {
	e := NewError(http.StatusBadRequest, "Bad Request", "the body and the URL name different resources")
	compare := func(field, body, url string) {
		if body != url {
			e.add(field, fmt.Sprintf("is %q in the body and %q in the URL", body, url))
		}
	}
	compare("type", string(body.Type), string(url.Type))
	compare("mesh", body.Mesh, url.Mesh)
	compare("namespace", body.Namespace, url.Namespace)
	compare("name", body.Name, url.Name)
	if len(e.InvalidParameters) == 0 {
		return nil
	}
	return e
}
