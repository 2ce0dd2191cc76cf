package api

import (
	"context"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/access"
)

// judgedFor is how long an access decision stays valid. A request that takes longer, for its body or its turn, is
// authorized again before it is handled.
const judgedFor = 100 * time.Millisecond

// rejudging makes again check the credential of a row's request, and the permission as far as the route decides it.
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

// again authorizes a request anew if its last decision is old: while it waited, its credential may have been revoked,
// or its role removed.
func again(ctx context.Context) error {
	asked := access.AskedOf(ctx)
	if asked == nil || asked.Again == nil || time.Since(asked.Judged) < judgedFor {
		return nil
	}
	return asked.Again()
}
