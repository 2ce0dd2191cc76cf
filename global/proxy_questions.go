package global

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/questions"
	"github.com/causeway-mesh/causeway/questions/questionspb"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/resources/store"
)

// proxyQuestions answers questions about the Envoys of all zones: it judges the caller, and asks the zone.
type proxyQuestions struct {
	store  store.Reader
	sync   *kds.Global
	desk   *questions.Desk
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
	if err := p.reaches(zone); err != nil {
		return err
	}
	answer, err := p.desk.Ask(r.Context(), zone, &questionspb.Question{Subject: subjects[subject], Mesh: dp.Mesh,
		Namespace: dp.HomeNamespace(), Name: dp.DisplayName(), Json: q.JSON, Match: q.Match, Unused: q.Unused})
	switch {
	case err != nil:
		return p.failed(zone, err)
	case answer.Status != http.StatusOK:
		return api.NewError(answer.Status, http.StatusText(answer.Status), "zone "+zone+": "+printing.Text(answer.Detail))
	case q.IsJSON() && !json.Valid(answer.Body):
		return api.NewError(http.StatusBadGateway, "Bad Gateway", "zone "+zone+" answers with what is not JSON")
	}
	return api.WriteProxyAnswer(w, q, &api.ProxyAnswer{Body: answer.Body, Warning: printing.Text(answer.Warning)})
}

// reaches returns the reason why a zone cannot be asked here, or nil.
func (p *proxyQuestions) reaches(zone string) error {
	if why := absent(p.sync, zone); why != nil {
		return api.NewError(http.StatusServiceUnavailable, "Service Unavailable", fmt.Sprintf(
			"unknown: %s, since %s: what its proxies have can be asked of the zone's own HTTP API", why.Reason, why.Since.Format(time.RFC3339)))
	}
	if p.sync.Understands(zone, exchange.FeatureQuestions) {
		return nil
	}
	if !p.sync.Understands(zone, 0) {
		where := "another replica of the global"
		if claim := kds.ClaimOf(p.store.Snapshot(), zone); claim != nil && claim.Replica != "" {
			where = "the replica " + claim.Replica + " of the global"
		}
		return api.NewError(http.StatusServiceUnavailable, "Service Unavailable", "unknown: zone "+zone+
			" is connected to "+where+": ask that one; causewayctl get replicas lists them")
	}
	return api.NewError(http.StatusConflict, "Conflict", "zone "+zone+" takes no questions from its global: it is of a "+
		"version before them, or has not joined with a certificate; ask its own HTTP API, by --address")
}

// failed returns the error for a question without an answer.
func (p *proxyQuestions) failed(zone string, err error) error {
	switch {
	case errors.Is(err, questions.ErrBusy):
		return api.NewError(http.StatusTooManyRequests, "Too Many Requests", err.Error()+": ask again when they are answered")
	case errors.Is(err, questions.ErrNotTaken), errors.Is(err, questions.ErrUnanswered):
		heard := ""
		if at := p.sync.LastHeard(zone); !at.IsZero() {
			heard = ", last heard of at " + at.UTC().Format(time.RFC3339)
		}
		return api.NewError(http.StatusGatewayTimeout, "Gateway Timeout", fmt.Sprintf("unknown: zone %s %s%s", zone, err, heard))
	case errors.Is(err, questions.ErrTooLarge), errors.Is(err, questions.ErrDisorder):
		return api.NewError(http.StatusBadGateway, "Bad Gateway", fmt.Sprintf("zone %s %s: ask its own HTTP API", zone, err))
	}
	return err
}
