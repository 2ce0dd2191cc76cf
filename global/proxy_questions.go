package global

import (
	"encoding/json"
	"net/http"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/questions/questionspb"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// proxyQuestions answers questions about the Envoys of all zones: it judges the caller, and asks the zone.
type proxyQuestions struct {
	zones  *zoneQuestions
	store  store.Reader
	routes *api.Server
}

// subjects are what zones are asked for.
var subjects = map[api.ProxySubject]questionspb.Question_Subject{
	api.ProxyConfig:       questionspb.Question_SUBJECT_CONFIG,
	api.ProxyStats:        questionspb.Question_SUBJECT_STATS,
	api.ProxyClusters:     questionspb.Question_SUBJECT_CLUSTERS,
	api.ProxyCertificates: questionspb.Question_SUBJECT_CERTIFICATES,
}

func (p *proxyQuestions) register() {
	for subject, route := range api.ProxyRoutes {
		p.routes.Handle(route, func(w http.ResponseWriter, r *http.Request) error { return p.serve(w, r, subject) })
	}
}

func (p *proxyQuestions) serve(w http.ResponseWriter, r *http.Request, subject api.ProxySubject) error {
	q, err := api.ProxyQuestionOf(r, subject)
	if err != nil {
		return err
	}
	dp, err := p.routes.Find(r, p.store.Snapshot(), resources.VerbObserve, resources.Key{Type: resources.TypeDataplane,
		Mesh: r.PathValue("mesh"), Namespace: r.URL.Query().Get("namespace"), Name: r.PathValue("name")})
	if err != nil {
		return err
	}
	zone := dp.Zone()
	answer, err := p.zones.ask(r.Context(), zone, exchange.FeatureQuestions, &questionspb.Question{Subject: subjects[subject],
		Mesh: dp.Mesh, Namespace: dp.HomeNamespace(), Name: dp.DisplayName(), Json: q.JSON, Match: q.Match, Unused: q.Unused})
	if err != nil {
		return err
	}
	if q.IsJSON() && !json.Valid(answer.Body) {
		return api.NewError(http.StatusBadGateway, "Bad Gateway", "zone "+zone+" sent an answer that is not JSON")
	}
	return api.WriteProxyAnswer(w, q, &api.ProxyAnswer{Body: answer.Body, Warning: printing.Text(answer.Warning)})
}
