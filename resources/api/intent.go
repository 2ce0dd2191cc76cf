package api

import (
	"context"
	"fmt"
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// maxIntentNames bounds how many resources of a batch its intent names.
const maxIntentNames = 1000

// storesByName reports whether the handler of a row names what it is about to store, by intendBatch. Of other requests that change
// something, the path says enough.
func (row *Row) storesByName() bool {
	return row.Type == "" && (row.Verb == write || row.Verb == resources.VerbDelete)
}

// intend writes down that a request is about to be answered by a handler that may change something.
func (s *Server) intend(r *http.Request, row *Row) error {
	if !changes(r.Method) || row.Verb == "" || row.Verb == read || row.storesByName() {
		return nil
	}
	asked := access.AskedOf(r.Context())
	entry := asked.Entry
	entry.About(row.action(r, row.verbs()[0]))
	entry.Event = eventOf(row.verbs()[0])
	return s.begin(asked, entry)
}

// intendBatch writes down that a batch is about to be applied, with the names of what is in it.
func (s *Server) intendBatch(ctx context.Context, b store.Batch) error {
	asked := access.AskedOf(ctx)
	if asked == nil || asked.Intent != nil {
		return nil
	}
	entry := asked.Entry
	for i := range b.Ops[:min(len(b.Ops), maxIntentNames)] {
		k, verb := b.Ops[i].Delete, resources.VerbDelete
		if put := b.Ops[i].Put; put != nil {
			k, verb = put.Key, resources.VerbUpdate
		}
		entry.Changes = append(entry.Changes, access.ResourceChange{Type: string(k.Type), Mesh: k.Mesh, Namespace: k.Namespace, Name: k.Name, Result: verb})
	}
	return s.begin(asked, entry)
}

func (s *Server) begin(asked *access.Asked, entry access.Entry) error {
	if s.config.Guard == nil || s.config.Guard.Audit() == nil {
		return nil
	}
	var err error
	if asked.Intent, err = s.config.Guard.Audit().Begin(askedBy(asked.Subject, entry)); err != nil {
		s.config.Log.Error("the audit log cannot be written", "request", entry.Request, "user", entry.User, "error", err)
	}
	return err
}

// insistOnIntent panics when resources were changed that nobody had written down before: a handler forgot to.
func insistOnIntent(r *http.Request, asked *access.Asked) {
	if asked.Intent == nil && len(asked.Entry.Changes) > 0 {
		panic(fmt.Sprintf("the handler of %q has changed what no intent in the audit log tells of", r.Pattern))
	}
}
