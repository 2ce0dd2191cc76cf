package enrolment

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
)

// advisingGlobal is a signingGlobal that advises, and takes a while to sign.
type advisingGlobal struct {
	*signingGlobal
	advice chan *enrolmentpb.Advice
	takes  time.Duration
}

// Invoke implements grpc.ClientConnInterface.
func (g *advisingGlobal) Invoke(ctx context.Context, method string, in, out any, options ...grpc.CallOption) error {
	if _, ok := in.(*enrolmentpb.RenewRequest); ok {
		time.Sleep(g.takes)
	}
	return g.signingGlobal.Invoke(ctx, method, in, out, options...)
}

// NewStream implements grpc.ClientConnInterface: a stream of advice.
func (g *advisingGlobal) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string,
	_ ...grpc.CallOption) (grpc.ClientStream, error) {
	return adviceStream{silentStream{ctx}, g.advice}, nil
}

type adviceStream struct {
	silentStream
	advice <-chan *enrolmentpb.Advice
}

func (s adviceStream) RecvMsg(m any) error {
	select {
	case a := <-s.advice:
		proto.Merge(m.(proto.Message), a)
		return nil
	case <-s.ctx.Done():
		return io.EOF
	}
}

// advised runs the renewal of a zone that has joined a global, while do runs.
func advised(t *testing.T, g *advisingGlobal, asked *atomic.Int32, do func()) {
	t.Helper()
	r := &Renewal{Holder: renewingZone(t, "zone-1", g.signingGlobal), Zone: "zone-1", Now: time.Now,
		Questions: func() { asked.Add(1) }, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, g) }()
	synctest.Wait()
	do()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAdviceToRenewIsNotLostAmongQuestions advises a zone to renew while it renews, after questions that wait for it: it
// renews once more.
func TestAdviceToRenewIsNotLostAmongQuestions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &advisingGlobal{newSigningGlobal(t), make(chan *enrolmentpb.Advice), 10 * time.Second}
		var asked atomic.Int32
		advised(t, g, &asked, func() {
			g.advice <- &enrolmentpb.Advice{Renew: true}
			synctest.Wait() // for the request to be under way
			g.advice <- &enrolmentpb.Advice{Questions: true}
			g.advice <- &enrolmentpb.Advice{Renew: true}
			time.Sleep(time.Minute)
		})
		if n := len(g.issued); n != 3 || asked.Load() != 1 {
			t.Errorf("%d certificates, and asked %d times: want that of the join and two more, and once", n, asked.Load())
		}
	})
}

// TestQuestionsHurryNoRenewal asks a zone whose renewal fails, again and again: it tries no more often for that.
func TestQuestionsHurryNoRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &advisingGlobal{newSigningGlobal(t), make(chan *enrolmentpb.Advice), 0}
		var asked, tried atomic.Int32
		advised(t, g, &asked, func() {
			g.mu.Lock()
			g.away = func(time.Time) bool { tried.Add(1); return true }
			g.mu.Unlock()
			g.advice <- &enrolmentpb.Advice{Renew: true}
			for range 50 {
				time.Sleep(time.Second)
				g.advice <- &enrolmentpb.Advice{Questions: true}
			}
			synctest.Wait()
		})
		if n := tried.Load(); n < 3 || n > 6 || asked.Load() != 50 { // after 0, 1, 3, 7, 15 and 31 seconds
			t.Errorf("tried %d times in 50 s, and asked %d times", n, asked.Load())
		}
	})
}
