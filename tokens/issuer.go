package tokens

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/causeway-mesh/causeway/secrets"
)

// defaultName is the name of the secret with a server's ring of keys.
const defaultName = "token-signing"

// Config configures an Issuer.
type Config struct {
	// Keeper is required.
	Keeper *secrets.Keeper
	// Name is the name of the secret with the keys, "token-signing" if empty. Revoked and used ids, and serial numbers
	// of revoked certificates, are kept in the secrets <Name>-revoked, <Name>-used and <Name>-revoked-certificates.
	Name string
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Log receives changes of keys; slog.Default if nil.
	Log *slog.Logger
}

// Issuer issues and verifies the tokens of a server and its replicas. Safe for concurrent use.
type Issuer struct {
	cfg           Config
	ring          document[*ring]
	revoked, used document[ids]
	certificates  document[ids] // revoked ones, by serial number
	forget        func() time.Time

	mu      sync.Mutex
	changed chan struct{} // guarded by mu; closed by Run, and replaced
}

// Open returns the issuer of the ring in the keeper, and creates the first key if there is none. Errors are those of
// the keeper, such as secrets.ErrWrongKey if secrets are sealed with another key.
func Open(ctx context.Context, c Config) (*Issuer, error) {
	if c.Name == "" {
		c.Name = defaultName
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	list := func(suffix string) document[ids] {
		return document[ids]{keeper: c.Keeper, name: c.Name + suffix, decode: decodeIDs, empty: func() ids { return ids{} }}
	}
	i := &Issuer{
		cfg: c, forget: secrets.Forgetting(c.Now),
		ring:    document[*ring]{keeper: c.Keeper, name: c.Name, decode: decodeRing, empty: func() *ring { return &ring{} }},
		revoked: list("-revoked"), used: list("-used"), certificates: list("-revoked-certificates"),
		changed: make(chan struct{}),
	}
	for _, read := range []func() error{
		func() error { _, err := i.revoked.get(ctx); return err },
		func() error { _, err := i.used.get(ctx); return err },
		func() error { _, err := i.certificates.get(ctx); return err },
	} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("tokens: %w", err)
		}
	}
	current, err := i.ring.get(ctx)
	if err == nil && current.signer() == nil {
		_, err = i.rotate(ctx, func(r *ring) bool { return r.signer() == nil })
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	return i, nil
}

// Issue signs a token that is valid from now for ttl. It fills in the times, and the id unless the caller gives one,
// and returns the signed claims. Errors: ErrClaims, those of the keeper.
func (i *Issuer) Issue(ctx context.Context, c Claims, ttl time.Duration) (token string, issued Claims, err error) {
	switch {
	case c.Audience == "":
		return "", Claims{}, fmt.Errorf("%w: the audience is missing", ErrClaims)
	case ttl < time.Second || ttl > MaxLifetime:
		return "", Claims{}, fmt.Errorf("%w: a lifetime of %s: want between 1s and %s", ErrClaims, ttl, MaxLifetime)
	}
	current, err := i.ring.get(ctx)
	if err != nil {
		return "", Claims{}, err
	}
	key := current.signer()
	now := i.cfg.Now().Truncate(time.Second)
	if c.ID == "" {
		c.ID = uuid.NewString()
	}
	c.IssuedAt, c.NotBefore, c.Expires = now, now.Add(-skew), now.Add(ttl)
	t := jwt.NewWithClaims(key.method, payloadOf(&c))
	t.Header["kid"] = key.ID
	token, err = t.SignedString(key.signing())
	if err != nil {
		return "", Claims{}, fmt.Errorf("%w %q: %w", ErrKey, key.ID, err)
	}
	if len(token) > maxTokenBytes {
		return "", Claims{}, fmt.Errorf("%w: the token would have %d bytes, more than %d", ErrClaims, len(token),
			maxTokenBytes)
	}
	return token, c, nil
}

// Rotate creates a new key, which signs from now on, and returns its id. Older keys still verify until they are
// retired.
func (i *Issuer) Rotate(ctx context.Context) (kid string, err error) {
	return i.rotate(ctx, func(*ring) bool { return true })
}

// rotate adds a key if needed reports so for the ring at the moment of the write.
func (i *Issuer) rotate(ctx context.Context, needed func(*ring) bool) (string, error) {
	made, err := newKey(i.cfg.Now())
	if err != nil {
		return "", err
	}
	err = i.ring.edit(ctx, func(r *ring) error {
		if !needed(r) {
			return nil
		}
		return r.add(made)
	})
	if err != nil {
		return "", err
	}
	i.cfg.Log.Info("new key for tokens", "kid", made.ID)
	return made.ID, nil
}

// Retire removes a key: tokens that it signed are refused from now on. The signing key cannot be retired. Errors:
// ErrKey, ErrNoKey.
func (i *Issuer) Retire(ctx context.Context, kid string) error {
	if err := i.ring.edit(ctx, func(r *ring) error { return r.retire(kid) }); err != nil {
		return err
	}
	i.cfg.Log.Info("retired a key for tokens", "kid", kid)
	return nil
}

// Import adds a public key, PEM of an Ed25519 or RSA key. From now on its owner can sign tokens that this server
// accepts, for every audience. Those tokens must carry the kid. Errors: ErrKey.
func (i *Issuer) Import(ctx context.Context, publicKeyPEM []byte, kid string) error {
	key, err := importedKey(publicKeyPEM, kid, i.cfg.Now())
	if err != nil {
		return err
	}
	return i.ring.edit(ctx, func(r *ring) error { return r.add(key) })
}

// Keys lists the keys, oldest first. It returns none if the ring cannot be read.
func (i *Issuer) Keys() []Key {
	current, err := i.ring.get(context.Background())
	if err != nil {
		return nil
	}
	return current.list()
}

// Revoke refuses the tokens with an id from now on. The id is remembered until the given time, which must not be before
// the token's expiry. Errors: ErrClaims, ErrFull.
func (i *Issuer) Revoke(ctx context.Context, id string, until time.Time) error {
	if id == "" || len(id) > maxIDBytes {
		return fmt.Errorf("%w: the id to revoke is empty or longer than %d bytes", ErrClaims, maxIDBytes)
	}
	return i.revoked.edit(ctx, func(s ids) error { return s.add(id, until, i.forget()) })
}

// Use marks a token's id as used. It succeeds once; after that it returns ErrUsed, on every replica. until is the
// token's expiry.
func (i *Issuer) Use(ctx context.Context, id string, until time.Time) error {
	if id == "" || len(id) > maxIDBytes {
		return fmt.Errorf("%w: it has no usable id", ErrMalformed)
	}
	return i.used.edit(ctx, func(s ids) error {
		if s.has(id) {
			return ErrUsed
		}
		return s.add(id, until, i.forget())
	})
}

// RevokedIDs lists the revoked ids in alphabetical order.
func (i *Issuer) RevokedIDs() []string {
	revoked, err := i.revoked.get(context.Background())
	if err != nil {
		return nil
	}
	out := make([]string, 0, len(revoked))
	for id := range revoked {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// Revoked returns a channel that Run closes at the next change of keys or revocations. A caller that keeps a session
// open because of a token gets the channel, verifies the token, and verifies it again when the channel closes.
func (i *Issuer) Revoked() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.changed
}

// Generation identifies the keys and revocations that a token was verified with. While it is the same, only time
// changes the result of Verify.
type Generation struct{ ring, revoked uint64 }

// Generation returns the current generation. Call it before Verify.
func (i *Issuer) Generation() Generation {
	return Generation{i.cfg.Keeper.Version(i.ring.name), i.cfg.Keeper.Version(i.revoked.name)}
}

// Run follows the store until ctx ends, and then returns nil.
func (i *Issuer) Run(ctx context.Context) error {
	// Report changes from before Run as well: a caller may have verified in between.
	for last, first := i.Generation(), true; ; first = false {
		next := i.cfg.Keeper.Changed()
		if now := i.Generation(); first || now != last {
			last = now
			i.mu.Lock()
			close(i.changed)
			i.changed = make(chan struct{})
			i.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
	}
}
