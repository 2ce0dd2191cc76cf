package enrolment

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/kds"
)

const (
	// joinCallTimeout bounds the wait for one address in one attempt. joinTimeout bounds all attempts together.
	joinCallTimeout = 10 * time.Second
	joinTimeout     = 2 * time.Minute
	// joinPause is the pause after the first attempt. Each pause is twice the previous, plus or minus a quarter, up to
	// longestJoinPause.
	joinPause        = 500 * time.Millisecond
	longestJoinPause = 10 * time.Second
)

// ErrOtherZone reports that the data directory belongs to another zone.
var ErrOtherZone = errors.New("a zone's name cannot be changed")

// ErrNoAnswer reports that no address of the global answered during a join. Another attempt may succeed.
var ErrNoAnswer = errors.New("the global does not answer")

// Joined describes the membership of a zone that has joined.
type Joined struct {
	// Zone is the zone's name. ID identifies the zone for its whole life.
	Zone, ID string
	// Global is the address that answered.
	Global string
	// Expires is when the credential expires, unless it is renewed. A running zone renews it automatically.
	Expires time.Time
}

// tokenSum returns a hash that identifies a join string without storing its secret.
func tokenSum(offer *JoinString) string {
	sum := sha256.Sum256([]byte(offer.Token))
	return hex.EncodeToString(sum[:])
}

// SameZone returns an error if the data directory belongs to a zone of another name.
func (s *Holder) SameZone(zone string) error {
	if m := s.current.Load(); m != nil && zone != "" && m.Zone != zone {
		return fmt.Errorf("%w: this data directory is that of zone %s, and its name is in the names and identities of all that it has: "+
			"join as %s with a new data directory, move the workloads, and then delete %s on the global (causewayctl zone delete %s)",
			ErrOtherZone, m.Zone, zone, m.Zone, m.Zone)
	}
	return nil
}

// Join exchanges the join string's token for a credential, which it keeps, at the first of addresses that answers.
// Without addresses, it uses those of the join string. It tries for two minutes. Errors wrap ErrOtherZone or
// ErrNoAnswer, or contain the global's response.
func (s *Holder) Join(ctx context.Context, offer *JoinString, addresses []string, log *slog.Logger) (*Joined, error) {
	if err := s.SameZone(offer.Zone); err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		addresses = offer.Addresses
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for pause := joinPause; ; pause = min(2*pause, longestJoinPause) {
		var failures []error
		for _, address := range addresses {
			joined, err := s.joinAt(ctx, offer, address, addresses)
			if err == nil {
				return joined, nil
			}
			err = &joinRefusal{address, err}
			if final(err) {
				return nil, err
			}
			failures = append(failures, err)
		}
		log.Warn("the global does not answer: trying again", "zone", offer.Zone, "error", errors.Join(failures...))
		timer := time.NewTimer(pause*3/4 + rand.N(pause/2)) //nolint:gosec // spreads zones that ask at once
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("join: %w: %w", ErrNoAnswer, errors.Join(failures...))
		}
	}
}

// joinRefusal is the reason why a join at an address failed, in the global's words if it answered.
type joinRefusal struct {
	address string
	err     error
}

func (r *joinRefusal) Error() string { return r.address + ": " + status.Convert(r.err).Message() }

func (r *joinRefusal) Unwrap() error { return r.err }

// final reports whether a retry would not help.
func final(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Unknown, codes.Canceled:
		return false
	}
	return true
}

// joinAt attempts to join at one address.
func (s *Holder) joinAt(ctx context.Context, offer *JoinString, address string, addresses []string) (*Joined, error) {
	pin, err := hex.DecodeString(offer.CASHA256)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: host,
		InsecureSkipVerify: true, //nolint:gosec // the pin is checked instead
		VerifyConnection:   func(state tls.ConnectionState) error { return VerifyPinned(state, pin, host, s.now()) },
		Time:               s.now,
	}
	heard := &kds.Activity{}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(heard.Credentials(credentials.NewTLS(config))))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	next, csr, err := s.request(offer.Zone, offer)
	if err != nil {
		return nil, err
	}
	ctx, cancel := heard.While(ctx, joinCallTimeout)
	defer cancel()
	credential, err := Membership{Conn: conn}.Join(ctx, &enrolmentpb.JoinRequest{Token: offer.Token, Csr: csr})
	if err != nil {
		return nil, err
	}
	m, err := s.keep(next, origin{addresses, tokenSum(offer)}, credential, s.now())
	if err != nil {
		return nil, err
	}
	return &Joined{Zone: m.Zone, ID: m.ID, Global: address, Expires: m.Expires}, nil
}
