package api

import (
	"context"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/access"
)

// judgedFor is the time for which a judgement of who asks holds. A request that takes longer, for its body or its turn,
// is judged again before anything is done for it.
const judgedFor = 100 * time.Millisecond

// rejudging has again judge the request of a row: the credential, and the permission as far as the route decides it.
func (s *Server) rejudging(r *http.Request, row *Row) {
	asked := access.AskedOf(r.Context())
	if s.config.Guard == nil || asked == nil {
		return
	}
	asked.Again = func() error {
		subject, err := s.config.Guard.Readmit(r, s.proofs[row.Pattern], asked.Subject)
		if err != nil {
			return err
		}
		unjudged := asked.Unjudged
		asked.Subject, asked.Judged = subject, time.Now()
		err = s.meets(r, row)
		asked.Unjudged = unjudged
		return err
	}
}

// again judges a request anew if its judgement is old: its credential may have been revoked, or its role taken away,
// while it waited.
func again(ctx context.Context) error {
	asked := access.AskedOf(ctx)
	if asked == nil || asked.Again == nil || time.Since(asked.Judged) < judgedFor {
		return nil
	}
	return asked.Again()
}
