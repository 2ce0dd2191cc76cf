package global

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/questions"
	"github.com/causeway-mesh/causeway/tokens"
)

// membership issues certificates to zones: the first for a join token, the next over a connection with the previous
// one. It is an enrolment.MembershipServer.
type membership struct {
	*admission
	// ca holds the authorities of the global's own certificate, in PEM.
	ca []byte
	// rotations notifies of new authorities.
	rotations *rotations
	// questions has the questions that wait for zones.
	questions *questions.Queue
	// pace limits the certificates issued to each zone.
	pace *access.Pace
}

// A zone needs a certificate at half of the last one's life, and when authorities rotate. Each adds a line to the audit
// log, so a zone that asks in a loop would push out the lines of others.
const (
	certificateEvery = 10 * time.Second
	certificateBurst = 50
)

// refusedJoin is the message for a server whose join string this global does not or no longer accepts.
const refusedJoin = "the join string is not accepted: it was used already, or is another global's: causewayctl zone create ZONE --rejoin makes a new one"

// Judge implements enrolment.MembershipServer. A server joins over a connection of its own, which may send little
// before it has proved anything. The limit for an authenticated connection is larger than a join request may be.
func (s *membership) Judge(ctx context.Context, method string) error {
	guest := guestOf(ctx)
	if method == enrolmentpb.MembershipService_Join_FullMethodName {
		if guest != nil && (guest.Proven() || !guest.Call()) {
			return fmt.Errorf("%w: join over a connection of its own, and ask once", kds.ErrNotAllowed)
		}
		return nil
	}
	if !guest.Try() {
		return fmt.Errorf("%w: too many calls without a credential", kds.ErrUnauthenticated)
	}
	_, held, err := s.caller(ctx)
	if err == nil {
		guest.Prove()
		return nil
	}
	guest.Fail()
	if method == enrolmentpb.MembershipService_Renew_FullMethodName {
		// The caller is refused either way.
		_ = s.audit.record(ctx, auditEvent{Verb: tryRenew, Zone: held.Zone, Method: access.ByCertificate, Err: err})
	}
	return err
}

// Join implements enrolment.MembershipServer.
func (s *membership) Join(ctx context.Context, r *enrolmentpb.JoinRequest) (*enrolmentpb.Credential, error) {
	event := auditEvent{Verb: tryJoin, Method: access.ByToken}
	credential, err := s.join(ctx, r, &event)
	return s.audited(ctx, event, credential, err)
}

// audited returns a credential once the audit log has recorded it.
func (s *membership) audited(ctx context.Context, event auditEvent, credential *enrolmentpb.Credential,
	err error) (*enrolmentpb.Credential, error) {
	event.Err = err
	if failed := s.audit.record(ctx, event); failed != nil && err == nil {
		return nil, unaudited(failed)
	}
	return credential, err
}

// join also sets the event's zone.
func (s *membership) join(ctx context.Context, r *enrolmentpb.JoinRequest, event *auditEvent) (*enrolmentpb.Credential,
	error) {
	claims, err := s.tokens.Verify(r.GetToken(), tokens.AudienceJoin)
	if tokens.OfTime(err) {
		return nil, fmt.Errorf("%w: the join string is not valid: make a new one: %w", kds.ErrUnauthenticated, err)
	}
	if err != nil {
		return nil, &refusedToken{what: refusedJoin, why: err}
	}
	event.Zone = claims.Zone
	if err := s.besideJoin(ctx, claims.Zone); err != nil {
		return nil, err
	}
	who, request, err := enrolment.ParseSigningRequest(r.GetCsr())
	if err != nil {
		return nil, err
	}
	if who.Zone != claims.Zone {
		return nil, fmt.Errorf("%w: the join string is that of zone %s, the signing request names zone %s",
			kds.ErrNotAllowed, claims.Zone, who.Zone)
	}
	key := sha256.Sum256(request.RawSubjectPublicKeyInfo)
	credential, _, err := s.issue(ctx, event, who, request, func(m *enrolment.Record) error {
		if m.Leaving(s.now()) {
			return fmt.Errorf("%w: the zone is being deleted: make a new join string afterwards", kds.ErrUnauthenticated)
		}
		return admit(m, claims.ID, who.ID, hex.EncodeToString(key[:]))
	})
	return credential, err
}

// besideJoin verifies credentials sent beside a join token, so that none of them is ignored.
func (s *membership) besideJoin(ctx context.Context, zone string) error {
	if _, given := bearer(ctx); given {
		return fmt.Errorf("%w: a bearer token beside a join string: send the join string alone", kds.ErrUnauthenticated)
	}
	if connection := connectionOf(ctx); connection != nil {
		if _, err := s.byCertificate(connection, zone); err != nil {
			return fmt.Errorf("the certificate beside the join string: %w", err)
		}
	}
	return nil
}

// admit marks the token as used and makes id the zone's ID. A server that lost the response may retry with the same key
// until another server has replaced it. A token authorises one replacement: earlier tokens do not allow another.
func admit(m *enrolment.Record, token, id, key string) error {
	at := slices.IndexFunc(m.Joins, func(j enrolment.IssuedJoin) bool { return j.ID == token })
	switch {
	case !m.DeletedAt.IsZero() || at < 0:
		return fmt.Errorf("%w: the join string was withdrawn: make a new one", kds.ErrUnauthenticated)
	case m.Joins[at].UsedBy != "" && (m.Joins[at].UsedBy != key || m.ID != id):
		return &refusedToken{what: refusedJoin, why: tokens.ErrUsed}
	case m.Joined() && m.ID != id && !m.Joins[at].Rejoin:
		return fmt.Errorf("%w: a server has joined as zone %s already: if it is gone, make a join string with --rejoin",
			kds.ErrNotAllowed, m.Zone)
	}
	if m.ID != id {
		m.Certificates = nil
		for i := range m.Joins {
			m.Joins[i].Rejoin = false
		}
	}
	m.ID, m.Joins[at].UsedBy = id, key
	return nil
}

// issue signs a certificate. It becomes the zone's once allowed has agreed and the record is stored. The audit log
// records the intent first.
func (s *membership) issue(ctx context.Context, event *auditEvent, who enrolment.ZoneIdentity,
	request *x509.CertificateRequest, allowed func(*enrolment.Record) error) (*enrolmentpb.Credential,
	enrolment.Certificate, error) {
	der, held, err := s.authority.Sign(ctx, who, request)
	if err != nil {
		return nil, held, err
	}
	if err := s.audit.begin(ctx, event); err != nil {
		return nil, held, unaudited(err)
	}
	err = s.registry.Update(ctx, who.Zone, func(m *enrolment.Record) error {
		if err := allowed(m); err != nil {
			return err
		}
		if !s.pace.Allow(who.Zone) {
			return fmt.Errorf("%w: the zone requests certificates too often: it may have %d at once, then one every %s",
				kds.ErrNotAllowed, certificateBurst, certificateEvery)
		}
		m.Certificates = append(m.Certificates, enrolment.IssuedCertificate{
			Serial: held.Serial, Authority: held.Authority, Issued: s.now().UTC(), Expires: held.Expires.UTC(),
		})
		m.Tidy(s.registry.Forget())
		return nil
	})
	if err != nil {
		return nil, held, err
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &enrolmentpb.Credential{Certificate: string(certificate), Ca: string(s.ca),
		Expires: timestamppb.New(held.Expires)}, held, nil
}

// caller returns the zone that made a call and its connection.
func (s *membership) caller(ctx context.Context) (*zoneConnection, enrolment.Certificate, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	zone, err := kds.ClientID(md)
	if err != nil {
		return nil, enrolment.Certificate{}, err
	}
	connection := connectionOf(ctx)
	if connection == nil {
		return nil, enrolment.Certificate{}, fmt.Errorf("zone %s: %w: this connection showed no certificate", zone,
			kds.ErrUnauthenticated)
	}
	if _, err := s.byCertificate(connection, zone); err != nil {
		return nil, enrolment.Certificate{}, err
	}
	held, err := connection.now()
	return connection, held, err
}
