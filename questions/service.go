package questions

import (
	"context"

	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/messages"
	"github.com/causeway-mesh/causeway/questions/questionspb"
)

// Authenticate returns which zone makes a call: kds.GlobalConfig.Authenticate.
type Authenticate func(ctx context.Context) (zone string, pass kds.Pass, err error)

// Register adds the service to a server created with kds.ServerOptions. It judges a caller before it decodes the
// message.
func Register(r grpc.ServiceRegistrar, d *Queue, who Authenticate) {
	judge := func(ctx context.Context, _ string) (context.Context, error) {
		zone, _, err := who(ctx)
		if err != nil {
			return nil, kds.ToStatus(err)
		}
		return context.WithValue(ctx, zoneKey{}, zone), nil
	}
	questionspb.RegisterQuestionServiceServer(messages.Judged(r, judge), service{d})
}

// zoneKey is the context key of the zone that makes a call.
type zoneKey struct{}

func zoneOf(ctx context.Context) string {
	zone, _ := ctx.Value(zoneKey{}).(string)
	return zone
}

type service struct{ queue *Queue }

// Take implements questionspb.QuestionServiceServer.
func (s service) Take(ctx context.Context, _ *questionspb.TakeRequest) (*questionspb.TakeResponse, error) {
	return &questionspb.TakeResponse{Questions: s.queue.take(zoneOf(ctx))}, nil
}

// Answer implements questionspb.QuestionServiceServer.
func (s service) Answer(ctx context.Context, p *questionspb.AnswerPart) (*questionspb.AnswerPartResponse, error) {
	if err := s.queue.receive(zoneOf(ctx), p); err != nil {
		return nil, kds.ToStatus(err)
	}
	return &questionspb.AnswerPartResponse{}, nil
}
