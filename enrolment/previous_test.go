package enrolment

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/kds"
)

// Servers of the previous version know the messages of the service as JSON in a google.protobuf.BytesValue. These are
// theirs, byte for byte.
const (
	previousJoin       = `{"token":"a.b.c","csr":"MIIB/w=="}`
	previousRenew      = `{"csr":"MIIB/w=="}`
	previousConfirm    = `{"serial":"1f"}`
	previousCredential = `{"certificate":"-----BEGIN-----\n","ca":"-----CA-----\n","expires":"2030-01-02T03:04:05.000000006Z"}`
	previousConfirmed  = `{}`
	previousAdvice     = `{"renew":true}`
)

var (
	aCSR    = []byte{0x30, 0x82, 0x01, 0xff}
	expires = time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
)

// issuing is a MembershipServer that issues one credential, and records what it was asked.
type issuing struct {
	mu   sync.Mutex
	said []string // guarded by mu
}

func (s *issuing) record(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

func (s *issuing) Judge(_ context.Context, method string) error {
	s.record("%s", method)
	return nil
}

func (s *issuing) credential() *enrolmentpb.Credential {
	return &enrolmentpb.Credential{Certificate: "-----BEGIN-----\n", Ca: "-----CA-----\n",
		Expires: timestamppb.New(expires)}
}

func (s *issuing) Join(_ context.Context, r *enrolmentpb.JoinRequest) (*enrolmentpb.Credential, error) {
	s.record("%s %x", r.GetToken(), r.GetCsr())
	return s.credential(), nil
}

func (s *issuing) Renew(_ context.Context, r *enrolmentpb.RenewRequest) (*enrolmentpb.Credential, error) {
	s.record("%x", r.GetCsr())
	return s.credential(), nil
}

func (s *issuing) Confirm(_ context.Context, r *enrolmentpb.ConfirmRequest) (*enrolmentpb.ConfirmResponse, error) {
	s.record("%s", r.GetSerial())
	return &enrolmentpb.ConfirmResponse{}, nil
}

func (s *issuing) Follow(_ *enrolmentpb.FollowRequest,
	stream grpc.ServerStreamingServer[enrolmentpb.Advice]) error {
	return stream.Send(&enrolmentpb.Advice{Renew: true})
}

// recorded is what the calls of a zone, of either version, record.
var recorded = []string{
	"/causeway.v1.MembershipService/Join", "a.b.c 308201ff", "/causeway.v1.MembershipService/Renew", "308201ff",
	"/causeway.v1.MembershipService/Confirm", "1f", "/causeway.v1.MembershipService/Follow",
}

// connected serves what register adds, and returns a connection to it.
func connected(t *testing.T, register func(grpc.ServiceRegistrar)) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(kds.ServerOptions()...)
	register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

// TestZoneOfThePreviousVersion sends what such a zone sends, and reads the answers as it does.
func TestZoneOfThePreviousVersion(t *testing.T) {
	t.Parallel()
	s := &issuing{}
	conn := connected(t, func(r grpc.ServiceRegistrar) { RegisterMembership(r, s) })
	var credential struct {
		Certificate string    `json:"certificate"`
		CA          string    `json:"ca"`
		Expires     time.Time `json:"expires"`
	}
	call := func(method, request string, into any) {
		t.Helper()
		answer := new(wrapperspb.BytesValue)
		err := conn.Invoke(t.Context(), "/causeway.v1.MembershipService/"+method, wrapperspb.Bytes([]byte(request)), answer)
		if err == nil {
			err = json.Unmarshal(answer.GetValue(), into)
		}
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	for method, request := range map[string]string{"Join": previousJoin, "Renew": previousRenew} {
		credential.Certificate = ""
		s.said = nil
		call(method, request, &credential)
		if credential.Certificate != "-----BEGIN-----\n" || credential.CA != "-----CA-----\n" ||
			!credential.Expires.Equal(expires) {
			t.Errorf("%s: %+v", method, credential)
		}
	}
	s.said = nil
	call("Join", previousJoin, &credential)
	call("Renew", previousRenew, &credential)
	call("Confirm", previousConfirm, &struct{}{})
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true},
		"/causeway.v1.MembershipService/Follow")
	if err != nil {
		t.Fatal(err)
	}
	advice, heard := new(wrapperspb.BytesValue), struct{ Renew bool }{}
	for _, step := range []func() error{
		func() error { return stream.SendMsg(new(wrapperspb.BytesValue)) }, stream.CloseSend,
		func() error { return stream.RecvMsg(advice) },
		func() error { return json.Unmarshal(advice.GetValue(), &heard) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if !heard.Renew {
		t.Errorf("the advice is %s", advice.GetValue())
	}
	if !slices.Equal(s.said, recorded) {
		t.Errorf("the global heard %q, want %q", s.said, recorded)
	}
	for method, broken := range map[string]string{"Join": `{"csr":"!"}`, "Renew": "[]", "Confirm": `{"serial":1}`} {
		err := conn.Invoke(t.Context(), "/causeway.v1.MembershipService/"+method, wrapperspb.Bytes([]byte(broken)),
			new(wrapperspb.BytesValue))
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s of %s: %v", method, broken, err)
		}
	}
}

// previousGlobal answers as a global of the previous version: it decodes google.protobuf.BytesValue.
func previousGlobal(r grpc.ServiceRegistrar, s *issuing) {
	unary := func(method, want, answer string) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: method, Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the order of arguments is gRPC's
			in := new(wrapperspb.BytesValue)
			if err := decode(in); err != nil {
				return nil, err
			}
			var got, wanted any
			if json.Unmarshal(in.GetValue(), &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil ||
				fmt.Sprint(got) != fmt.Sprint(wanted) {
				return nil, status.Errorf(codes.InvalidArgument, "%s, want %s", in.GetValue(), want)
			}
			s.record("%s", method)
			return wrapperspb.Bytes([]byte(answer)), nil
		}}
	}
	r.RegisterService(&grpc.ServiceDesc{ServiceName: "causeway.v1.MembershipService", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{unary("Join", previousJoin, previousCredential),
			unary("Renew", previousRenew, previousCredential), unary("Confirm", previousConfirm, previousConfirmed)},
		Streams: []grpc.StreamDesc{{StreamName: "Follow", ServerStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			if err := stream.RecvMsg(new(wrapperspb.BytesValue)); err != nil {
				return err
			}
			return stream.SendMsg(wrapperspb.Bytes([]byte(previousAdvice)))
		}}},
	}, struct{}{})
}

// TestGlobalsOfBothVersions checks that a zone of this version joins, renews, confirms and follows with either.
func TestGlobalsOfBothVersions(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		register func(grpc.ServiceRegistrar, *issuing)
		recorded []string
	}{
		"this one":         {func(r grpc.ServiceRegistrar, s *issuing) { RegisterMembership(r, s) }, recorded},
		"the previous one": {previousGlobal, []string{"Join", "Renew", "Confirm"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &issuing{}
			zone := Membership{Conn: connected(t, func(r grpc.ServiceRegistrar) { one.register(r, s) })}
			for method, ask := range map[string]func() (*enrolmentpb.Credential, error){
				"Join": func() (*enrolmentpb.Credential, error) {
					return zone.Join(t.Context(), &enrolmentpb.JoinRequest{Token: "a.b.c", Csr: aCSR})
				},
				"Renew": func() (*enrolmentpb.Credential, error) {
					return zone.Renew(t.Context(), &enrolmentpb.RenewRequest{Csr: aCSR})
				},
			} {
				got, err := ask()
				if err != nil || got.GetCertificate() != "-----BEGIN-----\n" || got.GetCa() != "-----CA-----\n" ||
					!got.GetExpires().AsTime().Equal(expires) {
					t.Errorf("%s: %v, %v", method, got, err)
				}
			}
			if err := zone.Confirm(t.Context(), &enrolmentpb.ConfirmRequest{Serial: "1f"}); err != nil {
				t.Error(err)
			}
			advised := false
			_ = zone.Follow(t.Context(), func(a *enrolmentpb.Advice) { advised = a.GetRenew() })
			if !advised {
				t.Error("no advice came")
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			slices.Sort(s.said)
			want := slices.Sorted(slices.Values(one.recorded))
			if !slices.Equal(s.said, want) {
				t.Errorf("the global heard %q, want %q", s.said, want)
			}
		})
	}
}
