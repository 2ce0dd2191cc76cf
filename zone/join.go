package zone

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

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

const (
	// joinCallTimeout limits the silence of one address in one attempt. joinTimeout limits all attempts together.
	joinCallTimeout = 10 * time.Second
	joinTimeout     = 2 * time.Minute
	// joinPause is the pause after the first attempt. Each pause is twice the previous, give or take a quarter, up to
	// longestJoinPause.
	joinPause        = 500 * time.Millisecond
	longestJoinPause = 10 * time.Second
)

// ErrOtherZone reports that the data directory belongs to another zone.
var ErrOtherZone = errors.New("a zone's name cannot be changed")

// JoinConfig configures Join.
type JoinConfig struct {
	// Join is the join string. Required.
	Join string
	// DataDir is where Join keeps the credential. Required.
	DataDir string
	// Addresses, host:port, replace the addresses of the join string, and are kept. Optional.
	Addresses []string
	// SecretsKeyFile and SecretsPassphrase seal the credential, as in Config.
	SecretsKeyFile, SecretsPassphrase string
	// Log is slog.Default when nil.
	Log *slog.Logger
}

// Joined describes the membership of a zone that has joined.
type Joined struct {
	// Zone is the zone's name. ID identifies the zone for its whole life.
	Zone, ID string
	// Global is the address that answered.
	Global string
	// Expires is when the credential expires, unless it is renewed. A running zone renews it automatically.
	Expires time.Time
}

// Join generates a key, exchanges the join string's token for a credential of the global, and keeps both in the data
// directory, sealed. If no address of the global is reachable, Join retries for two minutes, at growing intervals. It
// writes the key to disk before it sends the token. If the answer is lost, the next attempt, even of a later process,
// sends the same token with the same key, and the global answers again. With any other key, the token counts as used. A
// zone that has joined before keeps its ID. Errors wrap enrolment.ErrJoinString, enrolment.ErrJoinFormat or ErrOtherZone, or
// contain the global's answer.
func Join(ctx context.Context, c JoinConfig) (*Joined, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.DataDir == "" {
		return nil, errors.New("data dir: say where the zone keeps its credential")
	}
	if err := server.MakeDataDir(c.DataDir, c.Log); err != nil {
		return nil, err
	}
	box, err := secrets.OpenBox(secrets.Config{KeyFile: c.SecretsKeyFile, Passphrase: c.SecretsPassphrase, Dir: c.DataDir, Log: c.Log})
	if err != nil {
		return nil, err
	}
	s, err := openMemberships(c.DataDir, box)
	if err != nil {
		return nil, err
	}
	offer, err := enrolment.ParseJoinString(c.Join)
	if err != nil {
		return nil, err
	}
	return s.join(ctx, offer, c.Addresses, c.Log)
}

// tokenSum returns a hash that identifies a join string without storing its secret.
func tokenSum(offer *enrolment.JoinString) string {
	sum := sha256.Sum256([]byte(offer.Token))
	return hex.EncodeToString(sum[:])
}

// settle joins with the join string of the settings, unless the zone already has, and completes the settings from the
// membership.
func (s *memberships) settle(ctx context.Context, cfg *Config) error {
	if cfg.Join != "" {
		if err := s.joinOnce(ctx, cfg); err != nil {
			return err
		}
	}
	m := s.current.Load()
	if m == nil {
		return nil
	}
	if err := s.sameZone(cfg.Zone); err != nil {
		return err
	}
	cfg.Zone = m.Zone
	if cfg.Global == "" {
		cfg.Global, cfg.otherGlobals = "grpcs://"+m.Addresses[0], m.Addresses[1:]
	}
	return nil
}

// joinOnce does nothing if the zone has joined with the same string, so that the string may stay in the settings. If
// the global refuses another string, the zone continues with its current credential until that expires.
func (s *memberships) joinOnce(ctx context.Context, cfg *Config) error {
	offer, err := enrolment.ParseJoinString(cfg.Join)
	if err != nil {
		return err
	}
	m := s.current.Load()
	if m != nil && m.Joined == tokenSum(offer) {
		cfg.Log.Info("this zone has joined already: the join string is of no more use", "zone", m.Zone)
		return nil
	}
	var addresses []string
	if cfg.Global != "" {
		urls, err := cfg.globals()
		if err != nil {
			return err
		}
		for _, u := range urls {
			addresses = append(addresses, u.Host)
		}
	}
	joined, err := s.join(ctx, offer, addresses, cfg.Log)
	switch {
	case err == nil:
		cfg.Log.Info("joined the global", "zone", joined.Zone, "id", joined.ID, "global", joined.Global, "expires", joined.Expires)
		return nil
	case m == nil || errors.Is(err, ErrOtherZone) || time.Now().After(m.Expires):
		return err
	}
	cfg.Log.Warn("the join string was not accepted: going on with the credential that is here", "zone", m.Zone, "error", err)
	return nil
}

// sameZone returns an error if the data directory belongs to a zone of another name.
func (s *memberships) sameZone(zone string) error {
	if m := s.current.Load(); m != nil && zone != "" && m.Zone != zone {
		return fmt.Errorf("%w: this data directory is that of zone %s, and its name is in the names and identities of all that it has: "+
			"join as %s with a new data directory, move the workloads, and then delete %s on the global (causewayctl zone delete %s)",
			ErrOtherZone, m.Zone, zone, m.Zone, m.Zone)
	}
	return nil
}

func (s *memberships) join(ctx context.Context, offer *enrolment.JoinString, addresses []string, log *slog.Logger) (*Joined, error) {
	if err := s.sameZone(offer.Zone); err != nil {
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
			return nil, fmt.Errorf("join: %w", errors.Join(failures...))
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
func (s *memberships) joinAt(ctx context.Context, offer *enrolment.JoinString, address string, addresses []string) (*Joined, error) {
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
		VerifyConnection:   func(state tls.ConnectionState) error { return verifyPinned(state, pin, host) },
	}
	heard := &kds.Heard{}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(heard.Credentials(credentials.NewTLS(config))))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	next, csr, err := s.request(offer.Zone)
	if err != nil {
		return nil, err
	}
	ctx, cancel := heard.While(ctx, joinCallTimeout)
	defer cancel()
	credential, err := enrolment.Membership{Conn: conn}.Join(ctx, &enrolment.JoinRequest{Token: offer.Token, CSR: csr})
	if err != nil {
		return nil, err
	}
	m, err := s.keep(next, origin{addresses, tokenSum(offer)}, credential, time.Now())
	if err != nil {
		return nil, err
	}
	return &Joined{Zone: m.Zone, ID: m.ID, Global: address, Expires: m.Expires}, nil
}
