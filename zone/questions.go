package zone

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/questions"
	"github.com/causeway-mesh/causeway/questions/questionspb"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/envoyadmin"
)

// answers answers the global's questions as the zone's own API answers a caller who may observe the Dataplane, and read
// the server. The global leaves out what its caller may not read.
type answers struct {
	zone     string
	admins   *envoyadmin.Admins
	observed *accesslog.Config
	log      *slog.Logger
}

// subjects lists what the global may ask for.
var subjects = map[questionspb.Question_Subject]api.ProxySubject{
	questionspb.Question_SUBJECT_CONFIG:       api.ProxyConfig,
	questionspb.Question_SUBJECT_STATS:        api.ProxyStats,
	questionspb.Question_SUBJECT_CLUSTERS:     api.ProxyClusters,
	questionspb.Question_SUBJECT_CERTIFICATES: api.ProxyCertificates,
}

// kinds are the kinds of observations that the global may ask for.
var kinds = map[questionspb.Question_Subject]accesslog.Kind{
	questionspb.Question_SUBJECT_DENIED:   accesslog.Denied,
	questionspb.Question_SUBJECT_SHADOW:   accesslog.Shadowed,
	questionspb.Question_SUBJECT_OBSERVED: accesslog.Everything,
}

func (p answers) answer(ctx context.Context, q *questionspb.Question) *questions.Answer {
	if kind, asked := kinds[q.GetSubject()]; asked {
		return p.reported(kind, q)
	}
	answer, err := p.admins.Answer(ctx, q.GetMesh(), q.GetNamespace(), q.GetName(), api.ProxyQuestion{
		Subject: subjects[q.GetSubject()], JSON: q.GetJson(), Match: q.GetMatch(), Unused: q.GetUnused()})
	var refused *api.Error
	switch {
	case err == nil:
		return &questions.Answer{Status: http.StatusOK, Body: answer.Body, Warning: answer.Warning}
	case errors.As(err, &refused):
		return &questions.Answer{Status: refused.Status, Detail: refused.Detail}
	case errors.Is(err, context.DeadlineExceeded):
		return &questions.Answer{Status: http.StatusGatewayTimeout, Detail: "the proxy did not answer in time"}
	}
	p.log.Error("the global asks for a proxy that cannot be asked", "mesh", q.GetMesh(), "namespace", q.GetNamespace(),
		"dataplane", q.GetName(), "error", err)
	return &questions.Answer{Status: http.StatusBadGateway, Detail: "the proxy could not be asked: the log of the zone's server says why"}
}

// reported returns what the zone's proxies reported.
func (p answers) reported(kind accesslog.Kind, q *questionspb.Question) *questions.Answer {
	of := accesslog.Selection{Kind: kind, Mesh: q.GetMesh()}
	if q.GetName() != "" {
		of.Dataplane = resources.KRI{Short: "dp", Mesh: q.GetMesh(), Zone: p.zone, Namespace: q.GetNamespace(), Name: q.GetName()}
	}
	body, err := p.observed.AppendRecord(nil, of)
	if err != nil {
		return &questions.Answer{Status: http.StatusBadGateway, Detail: err.Error()}
	}
	return &questions.Answer{Status: http.StatusOK, Body: body}
}
