package global

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/kds"
)

// Renew implements enrolment.MembershipServer. From then on, the connection counts as that of the new certificate.
func (s *membership) Renew(ctx context.Context, r *enrolmentpb.RenewRequest) (*enrolmentpb.Credential, error) {
	event := auditEvent{Verb: tryRenew, Method: access.ByCertificate}
	credential, err := s.renew(ctx, r, &event)
	return s.audited(ctx, event, credential, err)
}

// renew also sets the event's zone.
func (s *membership) renew(ctx context.Context, r *enrolmentpb.RenewRequest, event *auditEvent) (*enrolmentpb.Credential,
	error) {
	connection, held, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	event.Zone = held.Zone
	who, request, err := enrolment.ParseSigningRequest(r.GetCsr())
	if err != nil {
		return nil, err
	}
	if who != held.ZoneIdentity {
		return nil, fmt.Errorf("%w: the signing request must name the zone and ID of this connection's certificate", kds.ErrNotAllowed)
	}
	credential, next, err := s.issue(ctx, event, who, request, func(m *enrolment.Record) error {
		if m.ID != held.ID || m.Certificate(held.Serial) == nil {
			return fmt.Errorf("%w: the zone's certificate was revoked", kds.ErrUnauthenticated)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	connection.renewed(next)
	s.rechecks.shown.Add(1)
	return credential, nil
}

// Confirm implements enrolment.MembershipServer.
func (s *membership) Confirm(ctx context.Context, r *enrolmentpb.ConfirmRequest) (*enrolmentpb.ConfirmResponse,
	error) {
	_, held, err := s.caller(ctx)
	if err != nil {
		return nil, err
	}
	err = s.registry.Update(ctx, held.Zone, func(m *enrolment.Record) error {
		c := m.Certificate(r.GetSerial())
		if c == nil {
			return fmt.Errorf("%w: the zone has no certificate with this serial number", kds.ErrRequest)
		}
		if c.Stored {
			return enrolment.ErrNothing
		}
		c.Stored = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &enrolmentpb.ConfirmResponse{}, nil
}

// Follow implements enrolment.MembershipServer. It advises a zone to renew a certificate whose authority no longer
// signs, and to take the questions that wait for it.
func (s *membership) Follow(_ *enrolmentpb.FollowRequest,
	stream grpc.ServerStreamingServer[enrolmentpb.Advice]) error {
	ctx := stream.Context()
	connection, held, err := s.caller(ctx)
	if err != nil {
		return err
	}
	asked, leave := s.questions.Follow(held.Zone)
	defer leave()
	advised := ""
	for {
		signing, changed := s.rotations.now()
		held, err := connection.now()
		if err != nil {
			return err
		}
		if held.Authority != signing && advised != signing {
			advised = signing
			if err := stream.Send(&enrolmentpb.Advice{Renew: true}); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-asked:
			if err := stream.Send(&enrolmentpb.Advice{Questions: true}); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-s.rotations.ended:
			return kds.ErrDraining
		}
	}
}
