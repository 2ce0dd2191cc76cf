package zone

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

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
	// Now is the wall clock; time.Now when nil.
	Now func() time.Time
	// Log is slog.Default when nil.
	Log *slog.Logger
}

// Join generates a key, exchanges the join string's token for a credential of the global, and keeps both in the data
// directory, sealed. If no address of the global is reachable, Join retries for two minutes, at growing intervals. It
// writes the key to disk before it sends the token. If the answer is lost, the next attempt, even of a later process,
// sends the same token with the same key, and the global answers again. With any other key, the token counts as used. A
// zone that has joined before keeps its ID. Errors wrap enrolment.ErrJoinString, enrolment.ErrJoinFormat or
// enrolment.ErrOtherZone, or contain the global's answer.
func Join(ctx context.Context, c JoinConfig) (*enrolment.Joined, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.DataDir == "" {
		return nil, errors.New("data dir: name the folder for the zone's credential")
	}
	offer, err := enrolment.ParseJoinString(c.Join) // before anything is written
	if err != nil {
		return nil, err
	}
	if err := errors.Join(server.MakeDataDir(c.DataDir, c.Log), archive.Unfinished(c.DataDir)); err != nil {
		return nil, err
	}
	box, err := secrets.OpenBox(secrets.Config{KeyFile: c.SecretsKeyFile, Passphrase: c.SecretsPassphrase,
		Dir: c.DataDir, Log: c.Log})
	if err != nil {
		return nil, err
	}
	s, err := enrolment.OpenHolder(c.DataDir, box, c.Now)
	if err != nil {
		return nil, err
	}
	return s.Join(ctx, offer, c.Addresses, c.Log)
}

// settle joins with the join string of the settings, unless the zone already has, and completes the settings from the
// membership.
func settle(ctx context.Context, s *enrolment.Holder, cfg *Config) error {
	if cfg.Join != "" {
		if err := joinOnce(ctx, s, cfg); err != nil {
			return err
		}
	}
	m := s.Current()
	if m == nil {
		return nil
	}
	if err := s.SameZone(cfg.Zone); err != nil {
		return err
	}
	cfg.Zone = m.Zone
	if cfg.Global == "" {
		cfg.Global, cfg.otherGlobals = "grpcs://"+m.Addresses[0], m.Addresses[1:]
	}
	return nil
}

// insist retries while no global answers. A zone that has a credential continues with it.
func insist(ctx context.Context, s *enrolment.Holder, offer *enrolment.JoinString, addresses []string, cfg *Config) (*enrolment.Joined, error) {
	for {
		joined, err := s.Join(ctx, offer, addresses, cfg.Log)
		if !errors.Is(err, enrolment.ErrNoAnswer) || ctx.Err() != nil || s.Current() != nil {
			return joined, err
		}
	}
}

// joinOnce does nothing if the zone has joined with the same string, so that the string may stay in the settings. If
// the global refuses another string, the zone continues with its current credential until that expires.
func joinOnce(ctx context.Context, s *enrolment.Holder, cfg *Config) error {
	offer, err := enrolment.ParseJoinString(cfg.Join)
	if err != nil {
		return err
	}
	m := s.Current()
	if m != nil && m.JoinedBy(offer) {
		cfg.Log.Info("this zone has already joined: the join string is no longer needed", "zone", m.Zone)
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
	joined, err := insist(ctx, s, offer, addresses, cfg)
	switch {
	case err == nil:
		cfg.Log.Info("joined the global", "zone", joined.Zone, "id", joined.ID, "global", joined.Global, "expires",
			joined.Expires)
		return nil
	case m == nil || errors.Is(err, enrolment.ErrOtherZone) || cfg.Now().After(m.Expires):
		return err
	}
	cfg.Log.Warn("the global refused the join string: continuing with the stored credential", "zone", m.Zone, "error", err)
	return nil
}
