package global

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/questions/questionspb"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/accesslog"
)

// kinds are what zones are asked for of what their proxies reported.
var kinds = map[accesslog.Kind]questionspb.Question_Subject{
	accesslog.Denied:     questionspb.Question_SUBJECT_DENIED,
	accesslog.Shadowed:   questionspb.Question_SUBJECT_SHADOW,
	accesslog.Everything: questionspb.Question_SUBJECT_OBSERVED,
}

// reported returns what a zone's proxies reported. The caller leaves out what may not be read.
func (z *zoneQuestions) reported(ctx context.Context, zone string, of accesslog.Selection) (*accesslog.Record, error) {
	answer, err := z.ask(ctx, zone, exchange.FeatureReported, &questionspb.Question{Subject: kinds[of.Kind], Mesh: of.Mesh,
		Namespace: of.Dataplane.Namespace, Name: of.Dataplane.Name})
	if err != nil {
		return nil, err
	}
	record, err := accesslog.ReadRecord(answer.Body, zone, of)
	if err != nil {
		return nil, api.NewError(http.StatusBadGateway, "Bad Gateway", fmt.Sprintf("zone %s %s", zone, printing.Text(err.Error())))
	}
	return record, nil
}

// seen returns what a zone's proxies reported for the matrix of callers, or why that is unknown.
func (z *zoneQuestions) seen(ctx context.Context, zone, mesh string) (*accesslog.Record, string) {
	if z.store.Snapshot().Get(resources.Key{Type: resources.TypeZone, Name: zone}) == nil {
		return nil, "there is no zone " + zone + ", or you may not read it"
	}
	record, err := z.reported(ctx, zone, accesslog.Selection{Mesh: mesh})
	var refused *api.Error
	switch {
	case errors.As(err, &refused):
		return nil, refused.Detail
	case err != nil:
		return nil, "zone " + zone + " could not be asked"
	}
	return record, ""
}
