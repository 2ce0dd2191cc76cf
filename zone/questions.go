package zone

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/causeway-mesh/causeway/questions"
	"github.com/causeway-mesh/causeway/questions/questionspb"
	"github.com/causeway-mesh/causeway/resources/api"
	"github.com/causeway-mesh/causeway/zone/envoyadmin"
)

// proxyAnswers answers the global's questions as the zone's own API answers a caller who may observe the Dataplane.
type proxyAnswers struct {
	admins *envoyadmin.Admins
	log    *slog.Logger
}

// subjects lists what the global may ask for.
var subjects = map[questionspb.Question_Subject]api.ProxySubject{
	questionspb.Question_SUBJECT_CONFIG:       api.ProxyConfig,
	questionspb.Question_SUBJECT_STATS:        api.ProxyStats,
	questionspb.Question_SUBJECT_CLUSTERS:     api.ProxyClusters,
	questionspb.Question_SUBJECT_CERTIFICATES: api.ProxyCertificates,
}

func (p proxyAnswers) answer(ctx context.Context, q *questionspb.Question) *questions.Answer {
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
