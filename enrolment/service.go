package enrolment

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/messages"
)

// datedBack is how long before its signing a zone's certificate becomes valid, for verifiers whose clock is behind.
const datedBack = 5 * time.Minute

// maxMembershipMessage bounds a request of the service in either form, in bytes: several times the size of a token and
// a signing request.
const maxMembershipMessage = 32 << 10

// MembershipServer implements the service. Errors may wrap kds.ErrUnauthenticated, kds.ErrNotAllowed or kds.ErrRequest.
type MembershipServer interface {
	// Judge returns an error if the caller may not call a method, given by its full name. It runs before the message is
	// decoded. A stranger may call Join, whose message contains the proof.
	Judge(ctx context.Context, method string) error
	enrolmentpb.MembershipServiceServer
}

// RegisterMembership adds the service to a server created with kds.ServerOptions.
func RegisterMembership(r grpc.ServiceRegistrar, s MembershipServer) {
	judge := func(ctx context.Context, method string) (context.Context, error) {
		return ctx, kds.ToStatus(s.Judge(ctx, method))
	}
	enrolmentpb.RegisterMembershipServiceServer(messages.Judged(r, judge), service{s})
}

// service bounds requests, converts those of zones of the previous version, and returns errors as statuses.
type service struct{ server MembershipServer }

// Join implements enrolmentpb.MembershipServiceServer.
func (s service) Join(ctx context.Context, r *enrolmentpb.JoinRequest) (*enrolmentpb.Credential, error) {
	return answer(ctx, r, s.server.Join)
}

// Renew implements enrolmentpb.MembershipServiceServer.
func (s service) Renew(ctx context.Context, r *enrolmentpb.RenewRequest) (*enrolmentpb.Credential, error) {
	return answer(ctx, r, s.server.Renew)
}

// Confirm implements enrolmentpb.MembershipServiceServer.
func (s service) Confirm(ctx context.Context, r *enrolmentpb.ConfirmRequest) (*enrolmentpb.ConfirmResponse, error) {
	return answer(ctx, r, s.server.Confirm)
}

// Follow implements enrolmentpb.MembershipServiceServer.
func (s service) Follow(r *enrolmentpb.FollowRequest, stream grpc.ServerStreamingServer[enrolmentpb.Advice]) error {
	return kds.ToStatus(s.server.Follow(r, follower{stream}))
}

// follower also sends advice as JSON, because a request to follow does not tell which form the zone reads.
type follower struct {
	grpc.ServerStreamingServer[enrolmentpb.Advice]
}

// Send implements grpc.ServerStreamingServer.
func (f follower) Send(a *enrolmentpb.Advice) error {
	if err := messages.AddJSON(a); err != nil {
		return err
	}
	return f.ServerStreamingServer.Send(a)
}

// answer calls a method, and responds in the form of the request.
func answer[In, Out messages.JSONForm](ctx context.Context, in In, call func(context.Context, In) (Out,
	error)) (Out, error) {
	var none Out
	if messages.FormSize(in) > maxMembershipMessage {
		return none, kds.ToStatus(fmt.Errorf("%w: the message has more than %d bytes", kds.ErrRequest, maxMembershipMessage))
	}
	asJSON, err := messages.FromJSON(in)
	if err != nil {
		return none, kds.ToStatus(fmt.Errorf("%w: the message is not JSON of this call's form", kds.ErrRequest))
	}
	out, err := call(ctx, in)
	if err != nil {
		return none, kds.ToStatus(err)
	}
	if asJSON {
		err = messages.AddJSON(out)
	}
	return out, err
}

// Membership is a zone's client of the service. It supports globals of this version and of the previous one. The zero
// value with a connection is ready to use.
type Membership struct{ Conn grpc.ClientConnInterface }

func (m Membership) client() enrolmentpb.MembershipServiceClient {
	return enrolmentpb.NewMembershipServiceClient(m.Conn)
}

// Join exchanges a token for a credential.
func (m Membership) Join(ctx context.Context, r *enrolmentpb.JoinRequest) (*enrolmentpb.Credential, error) {
	return ask(ctx, r, m.client().Join)
}

// Renew requests the next credential.
func (m Membership) Renew(ctx context.Context, r *enrolmentpb.RenewRequest) (*enrolmentpb.Credential, error) {
	return ask(ctx, r, m.client().Renew)
}

// Confirm confirms that a credential is stored.
func (m Membership) Confirm(ctx context.Context, r *enrolmentpb.ConfirmRequest) error {
	_, err := ask(ctx, r, m.client().Confirm)
	return err
}

// ask sends a request in both forms, and reads the response in either.
func ask[In, Out messages.JSONForm](ctx context.Context, in In, call func(context.Context, In,
	...grpc.CallOption) (Out, error)) (Out, error) {
	var none Out
	if err := messages.AddJSON(in); err != nil {
		return none, err
	}
	out, err := call(ctx, in)
	if err != nil {
		return none, err
	}
	_, err = messages.FromJSON(out)
	return out, err
}

// Follow calls heard for each advice until the stream ends, and returns the reason.
func (m Membership) Follow(ctx context.Context, heard func(*enrolmentpb.Advice)) error {
	stream, err := m.client().Follow(ctx, &enrolmentpb.FollowRequest{})
	if err != nil {
		return err
	}
	for {
		advice, err := stream.Recv()
		if err != nil {
			return err
		}
		if _, err := messages.FromJSON(advice); err != nil {
			return err
		}
		heard(advice)
	}
}
