package api

import (
	"net/http"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// BatchResult is the response to `POST /_batch`: the result of each document, in the order of the documents.
type BatchResult struct {
	// Revision is the store's revision after the batch.
	Revision uint64        `json:"revision"`
	Results  []BatchedItem `json:"results"`
}

// BatchedItem is the result of one document.
type BatchedItem struct {
	Type      resources.Type `json:"type"`
	Mesh      string         `json:"mesh,omitempty"`
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	KRI       string         `json:"kri,omitempty"`
	// Result is ResultCreated, ResultUpdated or ResultUnchanged.
	Result   string   `json:"result"`
	Warnings []string `json:"warnings,omitempty"`
}

// batch handles `POST /_batch`. It stores all documents of the body or none. With `dryRun=server` it stores nothing,
// and the response is a Forecast.
func (s *Server) batch(w http.ResponseWriter, r *http.Request) error {
	note(r.Context(), access.EventWrite, access.Action{})
	dryRun, err := wantsDryRun(r)
	if err != nil {
		return err
	}
	docs, done, err := s.readDocuments(w, r, true)
	defer done()
	if err != nil {
		return err
	}
	if dryRun {
		return s.writeForecast(w, r, docs, precondition{})
	}
	if err := s.writtenByKubectl(docs); err != nil {
		return err
	}
	stored, commit, err := s.apply(r.Context(), docs, precondition{})
	if err != nil {
		return err
	}
	result := batchResult(stored, commit)
	after := s.config.Store.Snapshot()
	for i, one := range stored {
		result.Results[i].Warnings = s.warningsOf(r.Context(), after, one)
	}
	return WriteJSON(w, http.StatusOK, result)
}

func batchResult(stored []*resources.Resource, commit *store.Commit) BatchResult {
	out := BatchResult{Revision: commit.Revision, Results: make([]BatchedItem, len(stored))}
	results := resultsOf(stored, commit)
	for i, r := range stored {
		out.Results[i] = itemOf(r, results[i])
	}
	return out
}

// resultsOf returns what a commit did to each resource of its batch.
func resultsOf(stored []*resources.Resource, commit *store.Commit) []string {
	out, changes := make([]string, len(stored)), commit.Changes // in the order of the resources
	for i, r := range stored {
		out[i] = ResultUnchanged
		if len(changes) == 0 || changes[0].Key() != r.Key {
			continue
		}
		if out[i] = ResultUpdated; changes[0].Old == nil {
			out[i] = ResultCreated
		}
		changes = changes[1:]
	}
	return out
}

// itemOf returns the result of r, without warnings.
func itemOf(r *resources.Resource, result string) BatchedItem {
	return BatchedItem{
		Type: r.Type, Mesh: r.Mesh, Namespace: r.Namespace, Name: r.Name,
		KRI: resources.KRIOf(r).String(), Result: result,
	}
}
