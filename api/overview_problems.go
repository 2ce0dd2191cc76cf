package api

import (
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
)

// problemsQuery narrows a list of the overviews of Dataplanes to those with a problem: something that has no effect on the
// proxy, or that its Envoy refuses. A watch of it wakes only when a problem begins, ends or is another one: in a large
// mesh, proxies connect all the time.
const problemsQuery = "problems"

// withProblems selects the Dataplanes with a problem, as one caller may know them.
type withProblems struct {
	view   view
	reader *Reader
	// insights, if not nil, are for resources in the order of lists.
	insights *besides
	// unseen counts the Dataplanes whose insight the caller may not read: whether they have problems is not for them.
	unseen int
}

// match reports whether a Dataplane that the caller may read has a problem.
func (p *withProblems) match(r *resources.Resource) bool {
	if !p.reader.insightOf(r) {
		p.unseen++
		return false
	}
	insight := p.insight(r)
	return insight != nil && len(proxyProblems(insight)) > 0
}

func (p *withProblems) insight(r *resources.Resource) *resources.Resource {
	if p.insights != nil {
		return p.insights.of(r)
	}
	key := r.Key
	key.Type = insightOf(r.Type)
	return p.view.get(key)
}

// changes reports whether a change of a Dataplane is one of the list: the insight may be here before the Dataplane is, and
// stay after it.
func (p *withProblems) changes(change *store.Change) bool {
	switch {
	case change.Old == nil:
		return p.match(change.New)
	case change.New == nil:
		return p.match(change.Old)
	}
	return false
}

// proxyProblems returns the problems in the insight of a proxy by their source, nil if there are none.
func proxyProblems(insight *resources.Resource) map[string]string {
	if insight.Type != resources.TypeDataplaneInsight {
		return nil
	}
	proxy, err := resources.SpecAs[meshpb.DataplaneInsight](insight)
	if err != nil {
		return nil
	}
	return problemsOf(proxy)
}

// problemsIn is problemsText of an insight, empty for none and for one of a zone.
func problemsIn(insight *resources.Resource) string {
	if insight == nil {
		return ""
	}
	return problemsText(proxyProblems(insight))
}
