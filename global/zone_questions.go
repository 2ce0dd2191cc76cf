package global

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/questions"
	"github.com/causeway-mesh/causeway/questions/questionspb"
	"github.com/causeway-mesh/causeway/resources/store"
)

// zoneQuestions passes questions of the HTTP API on to zones. Callers are judged before.
type zoneQuestions struct {
	store     store.Reader
	sync      *kds.Global
	questions *questions.Queue
}

// ask returns the zone's answer, whose status is 200, or an error of the API. feature is the one that the zone must have.
func (z *zoneQuestions) ask(ctx context.Context, zone string, feature exchange.Features, q *questionspb.Question) (*questions.Answer, error) {
	if err := z.reaches(zone, feature); err != nil {
		return nil, err
	}
	answer, err := z.questions.Ask(ctx, zone, q)
	if err != nil {
		return nil, z.failed(zone, err)
	}
	if answer.Status != http.StatusOK {
		return nil, api.NewError(answer.Status, http.StatusText(answer.Status), "zone "+zone+": "+printing.Text(answer.Detail))
	}
	return answer, nil
}

// reaches returns the reason why a zone cannot be asked here, or nil.
func (z *zoneQuestions) reaches(zone string, feature exchange.Features) error {
	if why := absent(z.sync, zone); why != nil {
		return api.NewError(http.StatusServiceUnavailable, "Service Unavailable", fmt.Sprintf(
			"unknown: %s, since %s: what its proxies have can be asked of the zone's own HTTP API", why.Reason, why.Since.Format(time.RFC3339)))
	}
	if z.sync.Understands(zone, feature) {
		return nil
	}
	if !z.sync.Understands(zone, 0) {
		return api.NewError(http.StatusServiceUnavailable, "Service Unavailable", "unknown: zone "+zone+
			" is connected to "+z.holder(zone)+": ask that one; causewayctl get replicas lists them")
	}
	return api.NewError(http.StatusConflict, "Conflict", "zone "+zone+" takes no such questions from its global: it is of a "+
		"version before them, or has not joined with a certificate; ask its own HTTP API, by --address")
}

// holder says which replica a zone is connected to, as far as known. Whoever asks about a proxy need not be allowed to
// list replicas, so the text has no addresses.
func (z *zoneQuestions) holder(zone string) string {
	claim := kds.ClaimOf(z.store.Snapshot(), zone)
	if claim == nil || claim.Replica == "" {
		return "another replica of the global"
	}
	return "the replica " + claim.Replica + " of the global"
}

// failed returns the error for a question without an answer.
func (z *zoneQuestions) failed(zone string, err error) error {
	switch {
	case errors.Is(err, questions.ErrBusy):
		return api.NewError(http.StatusTooManyRequests, "Too Many Requests", err.Error()+": ask again when they are answered")
	case errors.Is(err, questions.ErrNotTaken), errors.Is(err, questions.ErrUnanswered):
		heard := ""
		if at := z.sync.LastActive(zone); !at.IsZero() {
			heard = ", last heard of at " + at.UTC().Format(time.RFC3339)
		}
		return api.NewError(http.StatusGatewayTimeout, "Gateway Timeout", fmt.Sprintf("unknown: zone %s %s%s", zone, err, heard))
	case errors.Is(err, questions.ErrTooLarge), errors.Is(err, questions.ErrDisorder):
		return api.NewError(http.StatusBadGateway, "Bad Gateway", fmt.Sprintf("zone %s %s: ask its own HTTP API", zone, err))
	}
	return err
}
