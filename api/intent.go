package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// maxIntentNames bounds the resources of a batch that its intent names.
const maxIntentNames = 1000

// storesByName reports whether the handler of a row names the resources that it is about to store, with intendBatch.
// For other requests that change something, the path is enough.
func (row *Row) storesByName() bool {
	return row.Type == "" && (row.Verb == write || row.Verb == resources.VerbDelete)
}

// asks reports whether a request changes nothing, whatever its method: a question with a body, or a dry run.
func (row *Row) asks(r *http.Request) bool {
	return row.Verb == "" || row.Verb == read ||
		strings.HasSuffix(row.Query, dryRunQuery) && r.URL.Query().Get(dryRunQuery) == dryRunServer
}

// intend writes an intent to the audit log before a handler that may change something runs.
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

// intendBatch writes an intent with the names of the resources in a batch before the batch is applied.
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
		entry.Changes = append(entry.Changes, access.ResourceChange{Type: string(k.Type), Mesh: k.Mesh,
			Namespace: k.Namespace, Name: k.Name, Result: verb})
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

// insistOnIntent panics if resources were changed without an intent, which is a bug of the handler.
func insistOnIntent(r *http.Request, asked *access.Asked) {
	if asked.Intent == nil && len(asked.Entry.Changes) > 0 {
		panic(fmt.Sprintf("the handler of %q made a change without an intent in the audit log", r.Pattern))
	}
}
