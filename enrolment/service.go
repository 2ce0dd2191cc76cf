package enrolment

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/kds"
)

// The service by which zones get and renew the credential that they connect with. It is served beside KDS, on the same
// port, and a Kuma global lacks it. Messages are JSON, so that they can grow.
const (
	membershipServiceName = "causeway.v1.MembershipService"
	methodConfirm         = "Confirm"
	methodFollow          = "Follow"
)

// MethodJoin and MethodRenew are the methods of the service that issue a credential.
const (
	MethodJoin  = "Join"
	MethodRenew = "Renew"
)

// datedBack is how long before its signing a zone's certificate begins to be valid, for verifiers whose clock is
// behind.
const datedBack = 5 * time.Minute

// maxMembershipMessage bounds a request of the service, in bytes: several times the size of a token and a signing
// request.
const maxMembershipMessage = 32 << 10

// JoinRequest exchanges a join string's token for a credential. CSR is a PKCS #10 request in DER, signed by the zone's
// own key, whose one URI names the zone and its persistent ID (Member.URI).
type JoinRequest struct {
	Token string `json:"token"`
	CSR   []byte `json:"csr"`
}

// RenewRequest requests the successor of this connection's credential.
type RenewRequest struct {
	CSR []byte `json:"csr"`
}

// ConfirmRequest confirms that a zone has stored a credential durably, and will connect with it from now on.
type ConfirmRequest struct {
	// Serial is the certificate's, in lower-case hex.
	Serial string `json:"serial"`
}

// Credential is what a zone connects with, beside its key.
type Credential struct {
	// Certificate is the zone's client certificate in PEM; CA the authorities that sign globals' certificates.
	Certificate string `json:"certificate"`
	CA          string `json:"ca"`
	// Expires is when the certificate expires.
	Expires time.Time `json:"expires"`
}

// Advice is a message of a global to a zone that follows.
type Advice struct {
	// Renew advises to renew the credential now, before half of its life.
	Renew bool `json:"renew"`
}

// MembershipServer implements the service. Errors may wrap kds.ErrUnauthenticated, kds.ErrNotAllowed or kds.ErrRequest.
type MembershipServer interface {
	// Judge returns an error if the caller may not call a method. It runs before the message is read. A stranger may
	// call MethodJoin, whose message contains the proof.
	Judge(ctx context.Context, method string) error
	Join(context.Context, *JoinRequest) (*Credential, error)
	Renew(context.Context, *RenewRequest) (*Credential, error)
	Confirm(context.Context, *ConfirmRequest) error
	// Follow sends advice until ctx ends.
	Follow(ctx context.Context, send func(*Advice) error) error
}

var membershipServiceDesc = grpc.ServiceDesc{
	ServiceName: membershipServiceName, HandlerType: (*MembershipServer)(nil),
	Methods: []grpc.MethodDesc{
		{MethodName: MethodJoin, Handler: unary(MethodJoin, MembershipServer.Join)},
		{MethodName: MethodRenew, Handler: unary(MethodRenew, MembershipServer.Renew)},
		{MethodName: methodConfirm, Handler: unary(methodConfirm,
			func(s MembershipServer, ctx context.Context, r *ConfirmRequest) (*struct{}, error) {
				return &struct{}{}, s.Confirm(ctx, r)
			})},
	},
	Streams: []grpc.StreamDesc{{StreamName: methodFollow, Handler: handleFollow, ServerStreams: true}},
}

// RegisterMembership adds the service to a server that was made with ServerOptions.
func RegisterMembership(r grpc.ServiceRegistrar, s MembershipServer) {
	r.RegisterService(&membershipServiceDesc, s)
}

// unary returns the handler of a method whose messages are JSON.
func unary[In, Out any](method string, call func(MembershipServer, context.Context, *In) (*Out,
	error)) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		if err := srv.(MembershipServer).Judge(ctx, method); err != nil {
			return nil, kds.ToStatus(err)
		}
		raw := new(wrapperspb.BytesValue)
		if err := decode(raw); err != nil {
			return nil, err
		}
		in := new(In)
		if err := unpack(raw, in); err != nil {
			return nil, kds.ToStatus(err)
		}
		out, err := call(srv.(MembershipServer), ctx, in)
		if err != nil {
			return nil, kds.ToStatus(err)
		}
		return pack(out)
	}
}

func handleFollow(srv any, stream grpc.ServerStream) error {
	if err := srv.(MembershipServer).Judge(stream.Context(), methodFollow); err != nil {
		return kds.ToStatus(err)
	}
	if err := stream.RecvMsg(new(wrapperspb.BytesValue)); err != nil {
		return err
	}
	return kds.ToStatus(srv.(MembershipServer).Follow(stream.Context(), func(a *Advice) error {
		m, err := pack(a)
		if err != nil {
			return err
		}
		return stream.SendMsg(m)
	}))
}

func pack(v any) (*wrapperspb.BytesValue, error) {
	raw, err := json.Marshal(v)
	return wrapperspb.Bytes(raw), err
}

func unpack(m *wrapperspb.BytesValue, v any) error {
	if len(m.GetValue()) > maxMembershipMessage {
		return fmt.Errorf("%w: larger than %d bytes", kds.ErrRequest, maxMembershipMessage)
	}
	if err := json.Unmarshal(m.GetValue(), v); err != nil {
		return fmt.Errorf("%w: not the JSON that was expected", kds.ErrRequest)
	}
	return nil
}

// Membership is a zone's client of the service. The zero value with a connection is ready to use.
type Membership struct{ Conn grpc.ClientConnInterface }

// Join exchanges a token for a credential.
func (m Membership) Join(ctx context.Context, r *JoinRequest) (*Credential, error) {
	out := new(Credential)
	return out, m.call(ctx, MethodJoin, r, out)
}

// Renew requests the next credential.
func (m Membership) Renew(ctx context.Context, r *RenewRequest) (*Credential, error) {
	out := new(Credential)
	return out, m.call(ctx, MethodRenew, r, out)
}

// Confirm confirms that a credential is stored.
func (m Membership) Confirm(ctx context.Context, r *ConfirmRequest) error {
	return m.call(ctx, methodConfirm, r, new(struct{}))
}

// Follow calls heard for each piece of advice until the stream ends, and returns the reason.
func (m Membership) Follow(ctx context.Context, heard func(Advice)) error {
	stream, err := m.Conn.NewStream(ctx, &membershipServiceDesc.Streams[0], "/"+membershipServiceName+"/"+methodFollow)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(new(wrapperspb.BytesValue)); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		raw, advice := new(wrapperspb.BytesValue), Advice{}
		if err := stream.RecvMsg(raw); err != nil {
			return err
		}
		if err := unpack(raw, &advice); err != nil {
			return err
		}
		heard(advice)
	}
}

func (m Membership) call(ctx context.Context, method string, in, out any) error {
	raw, err := pack(in)
	if err != nil {
		return err
	}
	answer := new(wrapperspb.BytesValue)
	if err := m.Conn.Invoke(ctx, "/"+membershipServiceName+"/"+method, raw, answer); err != nil {
		return err
	}
	return json.Unmarshal(answer.GetValue(), out)
}
