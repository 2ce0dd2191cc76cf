package questions

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/questions/questionspb"
)

var discarded = slog.New(slog.DiscardHandler)

// hall is a global's desk behind a real socket.
type hall struct {
	t    *testing.T
	desk *Queue
	conn *grpc.ClientConn
}

// served serves what register adds, and returns a connection to it.
func served(t *testing.T, register func(grpc.ServiceRegistrar)) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(kds.ServerOptions()...)
	register(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// newHall trusts what callers say of their zone.
func newHall(t *testing.T) *hall {
	t.Helper()
	h := &hall{t: t, desk: NewQueue()}
	h.conn = served(t, func(r grpc.ServiceRegistrar) {
		Register(r, h.desk, func(ctx context.Context) (string, kds.Pass, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			zone, err := kds.ClientID(md)
			if err != nil {
				err = fmt.Errorf("%w: %w", kds.ErrUnauthenticated, err)
			}
			return zone, nil, err
		})
	})
	return h
}

// as returns the context of a zone's calls.
func as(ctx context.Context, zone string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "client-id", zone)
}

// zone runs a zone that answers questions with answer, until the test ends.
func (h *hall) zone(name string, answer func(context.Context, *questionspb.Question) *Answer) {
	h.t.Helper()
	a := NewAnswerer(name, answer, panics.New(discarded), discarded)
	ctx, cancel := context.WithCancel(as(context.Background(), name))
	advice, leave := h.desk.Follow(name)
	var running sync.WaitGroup
	running.Go(func() { _ = a.Run(ctx, h.conn) })
	running.Go(func() {
		for {
			select {
			case <-advice:
				a.Wait()
			case <-ctx.Done():
				return
			}
		}
	})
	h.t.Cleanup(func() {
		cancel()
		running.Wait()
		leave()
	})
}

// asks asks a zone in the background.
func (h *hall) asks(zone string) <-chan result {
	out := make(chan result, 1)
	go func() {
		answer, err := h.desk.Ask(h.t.Context(), zone, &questionspb.Question{Name: "backend"})
		out <- result{answer, err}
	}()
	return out
}

type result struct {
	answer *Answer
	err    error
}

// takes takes a zone's next question, as soon as there is one.
func (h *hall) takes(zone string) *questionspb.Question {
	h.t.Helper()
	client := questionspb.NewQuestionServiceClient(h.conn)
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		taken, err := client.Take(as(h.t.Context(), zone), &questionspb.TakeRequest{})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(taken.GetQuestions()) > 0 {
			return taken.GetQuestions()[0]
		}
	}
	h.t.Fatal("no question in time")
	return nil
}

// says sends one part as a zone.
func (h *hall) says(zone string, p *questionspb.AnswerPart) error {
	_, err := questionspb.NewQuestionServiceClient(h.conn).Answer(as(h.t.Context(), zone), p)
	return err
}
