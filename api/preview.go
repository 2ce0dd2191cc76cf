package api

import (
	"context"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// dryRunServer is the value of the query parameter dryRun that requests a preview. Any other value is refused, so that
// a request for another kind of dry run never writes.
const dryRunServer = "server"

// Forecast is the response to `POST /_batch?dryRun=server`: the result that each document would have, in the order of
// the documents. Nothing is stored.
type Forecast struct {
	DryRun bool `json:"dryRun"`
	// Revision is the store's revision that the forecast is based on.
	Revision uint64         `json:"revision"`
	Results  []ForecastItem `json:"results"`
	// Verdicts are the verdicts that the documents together would change. It is nil if none of them decides who may
	// call whom.
	Verdicts *ForecastVerdicts `json:"verdicts,omitempty"`
}

// ForecastVerdicts are the verdicts on callers of services that a change would change.
type ForecastVerdicts struct {
	// Changes begin with losses of callers, the most frequently seen first. There are at most MaxForecastVerdicts.
	Changes []ForecastVerdict `json:"changes"`
	// Lost, Gained and Other count all changes: a caller may do less, may do more, or the effect depends on the
	// request.
	Lost   int `json:"lost"`
	Gained int `json:"gained"`
	Other  int `json:"other"`
	// Compared counts the compared services, of those whose proxies the change affects. NotCompared counts the rest:
	// with all callers there are too many.
	Compared    int `json:"compared"`
	NotCompared int `json:"notCompared,omitempty"`
	// Unseen is the reason why past callers are unknown; the counts of Changes then mean nothing.
	Unseen string `json:"unseen,omitempty"`
	// Since is when the counting of requests began, and Dropped counts those that are no longer distinguished, for lack
	// of room: a pair without counts may have been seen.
	Since   time.Time `json:"since,omitzero"`
	Dropped uint64    `json:"dropped,omitempty"`
	// LeftOut counts the services and Dataplanes that the caller may not read.
	LeftOut int `json:"leftOut,omitempty"`
}

// ForecastVerdict is a verdict that would change: allow, deny or depends, as in the matrix of callers.
type ForecastVerdict struct {
	// Service is the KRI of a MeshService with its port, or of a Dataplane's inbound.
	Service string `json:"service"`
	// Caller is a SPIFFE ID.
	Caller string `json:"caller"`
	Before string `json:"before"`
	After  string `json:"after"`
	// Policy would decide: a KRI, or the name of a decision that no policy makes.
	Policy string `json:"policy"`
	// Shadow is the verdict afterwards if every allowWithShadowDeny were a deny; empty if it is the same.
	Shadow string `json:"shadow,omitempty"`
	// Allowed and Denied count the requests that proxies reported.
	Allowed uint64 `json:"allowed,omitempty"`
	Denied  uint64 `json:"denied,omitempty"`
}

// MaxForecastVerdicts bounds the verdicts that a forecast names.
const MaxForecastVerdicts = 200

// ForecastItem is the result that one document would have.
type ForecastItem struct {
	// BatchedItem is the result that a write would return.
	BatchedItem
	// Role is the role of a policy.
	Role resources.Role `json:"role,omitempty"`
	// SyncedTo lists the servers that would receive a copy: "global", and zones by name.
	SyncedTo []string `json:"syncedTo"`
	// Proxies are the proxies that the change may affect. It is nil if the server cannot determine them.
	Proxies *ForecastProxies `json:"proxies,omitempty"`
}

// ForecastProxies are the proxies that a change may affect.
type ForecastProxies struct {
	// Zone is set on a zone server, which counts only proxies of this zone. It is empty if proxies of all zones count.
	Zone  string `json:"zone,omitempty"`
	Total int    `json:"total"`
	// Items are the first of their KRIs, sorted, at most MaxForecastProxies.
	Items []string `json:"items"`
	// LeftOut counts the proxies that the caller may not read. They are neither in the total nor among the items.
	LeftOut int `json:"leftOut,omitempty"`
}

// MaxForecastProxies bounds the proxies that a forecast names for one document.
const MaxForecastProxies = 100

// Preview is a write that is evaluated but not stored.
type Preview struct {
	// Before is the store that the write would change, and After the store as it would be then.
	Before, After store.Snapshot
	// Changes are in the order of the documents. The preview functions complete their Forecast.
	Changes []PreviewChange
	// Reader reports what the caller may read. The response contains nothing else.
	Reader *Reader
	// ReadsServer means that the caller may read the server's own data, such as proxies' reports.
	ReadsServer bool
	// Forecast is the response.
	Forecast *Forecast
}

// PreviewChange is one document of a preview.
type PreviewChange struct {
	// Old is nil for a new resource. New has its computed labels.
	Old, New *resources.Resource
	Forecast *ForecastItem
}

// PreviewFunc completes the forecasts of a preview with what it knows. Many requests may call it at once.
type PreviewFunc func(*Preview) error

// AddPreview makes f complete the responses to dry runs, after the functions that were added before. Call it before the
// server serves.
func (s *Server) AddPreview(f PreviewFunc) { s.previews = append(s.previews, f) }

// WarnFunc returns warnings about a resource that is valid but rarely intended, beyond resources.Warnings. after is the
// store with the resource in it. Warnings must name nothing that reader may not read. Many requests may call it at
// once.
type WarnFunc func(after store.Snapshot, r *resources.Resource, reader *Reader) []string

// AddWarnings makes f complete the warnings in the responses to writes and dry runs. Call it before the server serves.
func (s *Server) AddWarnings(f WarnFunc) { s.warnings = append(s.warnings, f) }

// warningsOf returns the warnings about a resource that was, or would be, stored.
func (s *Server) warningsOf(ctx context.Context, after store.Snapshot, r *resources.Resource) []string {
	out, reader := append(resources.Warnings(r), roleWarnings(r)...), s.readerOf(ctx)
	out = append(out, bindingWarnings(after, r, reader)...)
	for _, f := range s.warnings {
		out = append(out, f(after, r, reader)...)
	}
	return reader.texts(out)
}

// wantsDryRun reports whether a request asks for a preview, which the audit log omits because nothing is written. It
// fails for an unknown kind of dry run.
func wantsDryRun(r *http.Request) (bool, error) {
	q := r.URL.Query()
	if !q.Has(dryRunQuery) {
		return false, nil
	}
	if got := q.Get(dryRunQuery); got != dryRunServer {
		return false, BadField(dryRunQuery, "want %s, got %q", dryRunServer, got)
	}
	if asked := access.AskedOf(r.Context()); asked != nil {
		asked.Entry.Event = ""
	}
	return true, nil
}

// writeForecast responds with what applying the documents would do.
func (s *Server) writeForecast(w http.ResponseWriter, r *http.Request, docs []*resources.Resource,
	want precondition) error {
	forecast, err := s.forecast(r.Context(), docs)
	if err != nil {
		return err
	}
	if err := want.check(docs[0].Key, s.config.Store.Snapshot().Get(docs[0].Key)); err != nil {
		return err
	}
	return WriteJSON(w, http.StatusOK, forecast)
}

// forecast evaluates docs as apply would, and returns what they would change. It needs the same permissions as apply.
func (s *Server) forecast(ctx context.Context, docs []*resources.Resource) (*Forecast, error) {
	return s.foresee(ctx, docs, true)
}

// foresee is forecast. Without preview, it omits what takes time in proportion to the mesh.
func (s *Server) foresee(ctx context.Context, docs []*resources.Resource, preview bool) (*Forecast, error) {
	before := s.config.Store.Snapshot()
	if err := s.authorizePuts(ctx, before, docs); err != nil {
		return nil, err
	}
	labelled, err := s.accept(before, docs)
	if err != nil {
		return nil, err
	}
	if err := s.checkPuts(ctx, before, labelled); err != nil {
		return nil, err
	}
	out := &Forecast{DryRun: true, Revision: before.Revision(), Results: make([]ForecastItem, len(labelled))}
	p := &Preview{Before: before, Changes: make([]PreviewChange, len(labelled)), Reader: s.readerOf(ctx),
		ReadsServer: s.readsServer(ctx), Forecast: out}
	for i, doc := range labelled {
		old := before.Get(doc.Key)
		if doc, err = s.sealed(keepMark(doc, old), old); err != nil {
			return nil, err
		}
		labelled[i] = doc
		if old != nil && doc.Descriptor().HasStatus {
			labelled[i] = doc.Clone()
			labelled[i].Status = old.Status
		}
		out.Results[i] = ForecastItem{BatchedItem: itemOf(labelled[i], resultOf(old, labelled[i])), SyncedTo: []string{}}
		if doc.Descriptor().Policy != nil {
			out.Results[i].Role = resources.Role(doc.Labels[resources.LabelPolicyRole])
		}
		p.Changes[i] = PreviewChange{Old: old, New: labelled[i], Forecast: &out.Results[i]}
	}
	p.After = store.Overlay(before, labelled)
	for i, r := range labelled {
		out.Results[i].Warnings = s.warningsOf(ctx, p.After, r)
	}
	if !preview {
		return out, nil
	}
	for _, f := range s.previews {
		if err := f(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// resultOf returns the result of a write that replaces old by r.
func resultOf(old, r *resources.Resource) string {
	switch {
	case old == nil:
		return ResultCreated
	case old.SameContent(r):
		return ResultUnchanged
	}
	return ResultUpdated
}
