package api

import (
	"context"
	"net/http"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// dryRunServer is the value of the query parameter dryRun that asks for a preview. Any other is refused, so that nobody who
// asks for a dry run of another kind has written.
const dryRunServer = "server"

// Forecast is the answer to `POST /_batch?dryRun=server`: what would become of each document, in their order. Nothing is
// stored for it.
type Forecast struct {
	DryRun bool `json:"dryRun"`
	// Revision is the store's, which the forecast holds for.
	Revision uint64         `json:"revision"`
	Results  []ForecastItem `json:"results"`
}

// ForecastItem is what would become of one document.
type ForecastItem struct {
	// BatchedItem is the answer that a write would get.
	BatchedItem
	// Role is that of a policy, by which it reaches.
	Role resources.Role `json:"role,omitempty"`
	// SyncedTo are the servers that would get a copy: "global", and zones by name.
	SyncedTo []string `json:"syncedTo"`
	// Proxies are those that the change may concern; nil where the server cannot tell.
	Proxies *ForecastProxies `json:"proxies,omitempty"`
}

// ForecastProxies are the proxies that a change may concern.
type ForecastProxies struct {
	// Zone is the zone whose proxies alone are counted, on a zone server; empty where those of all zones are.
	Zone  string `json:"zone,omitempty"`
	Total int    `json:"total"`
	// Items are the first of their KRIs, sorted, MaxForecastProxies at most.
	Items []string `json:"items"`
	// LeftOut counts those that are neither in the total nor among the items, because who asks may not read them.
	LeftOut int `json:"leftOut,omitempty"`
}

// MaxForecastProxies bounds the proxies that a forecast names for one document.
const MaxForecastProxies = 100

// Preview is a write that is only asked about.
type Preview struct {
	// After is the store as it would be.
	After store.Snapshot
	// Changes are in the order of the documents; the owner's functions complete their Forecast.
	Changes []PreviewChange
	// Reader says what who asks may read: nothing else is in the answer.
	Reader *Reader
}

// PreviewChange is one document of a preview.
type PreviewChange struct {
	// Old is nil for a new resource. New has its computed labels.
	Old, New *resources.Resource
	Forecast *ForecastItem
}

// PreviewFunc completes what it knows of in the forecasts of a preview. It may be called from many requests at once.
type PreviewFunc func(*Preview) error

// AddPreview has f complete the answers to dry runs, after the functions that were added before. Call it before the server
// serves.
func (s *Server) AddPreview(f PreviewFunc) { s.previews = append(s.previews, f) }

// WarnFunc says what is valid in a resource but rarely meant, beyond resources.Warnings, in the store as it is with it. It may be
// called from many requests at once. Nothing that reader may not read is named.
type WarnFunc func(after store.Snapshot, r *resources.Resource, reader *Reader) []string

// AddWarnings has f complete the warnings in the answers to writes and dry runs. Call it before the server serves.
func (s *Server) AddWarnings(f WarnFunc) { s.warnings = append(s.warnings, f) }

// warningsOf are those of a resource that was stored, or would be.
func (s *Server) warningsOf(ctx context.Context, after store.Snapshot, r *resources.Resource) []string {
	out, reader := append(resources.Warnings(r), roleWarnings(r)...), s.readerOf(ctx)
	for _, f := range s.warnings {
		out = append(out, f(after, r, reader)...)
	}
	return reader.texts(out)
}

// wantsDryRun reports whether a request asks for a preview.
func wantsDryRun(r *http.Request) (bool, error) {
	q := r.URL.Query()
	if !q.Has("dryRun") {
		return false, nil
	}
	if got := q.Get("dryRun"); got != dryRunServer {
		return false, BadField("dryRun", "want %s, got %q", dryRunServer, got)
	}
	return true, nil
}

// forecast judges docs as apply would, and says what they would change. It needs the permissions that apply needs.
func (s *Server) forecast(ctx context.Context, docs []*resources.Resource) (*Forecast, error) {
	before := s.config.Store.Snapshot()
	if err := s.authorizePuts(ctx, before, docs); err != nil {
		return nil, err
	}
	docs, err := s.keepShown(before, docs)
	if err != nil {
		return nil, err
	}
	labelled, err := s.accept(docs)
	if err != nil {
		return nil, err
	}
	if err := s.checkPuts(ctx, before, labelled); err != nil {
		return nil, err
	}
	out := &Forecast{DryRun: true, Revision: before.Revision(), Results: make([]ForecastItem, len(labelled))}
	p := &Preview{Changes: make([]PreviewChange, len(labelled)), Reader: s.readerOf(ctx)}
	for i, doc := range labelled {
		old := before.Get(doc.Key)
		if doc, err = s.sealed(doc, old); err != nil {
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
	for _, f := range s.previews {
		if err := f(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// resultOf is what a write of r in the place of old would be.
func resultOf(old, r *resources.Resource) string {
	switch {
	case old == nil:
		return ResultCreated
	case old.SameContent(r):
		return ResultUnchanged
	}
	return ResultUpdated
}
