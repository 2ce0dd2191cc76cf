package podtoken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

const (
	// lookEvery is the shortest interval between two looks at the cluster's keys. Anyone can name an unknown key, and each
	// such token asks for a look.
	lookEvery = 10 * time.Second
	// keysFresh is the age from which the keys are read again: the cluster may have withdrawn one.
	keysFresh = 10 * time.Minute
	// maxDocument bounds the keys, in bytes, and maxKeys their number. A cluster has one or two, and more while it replaces
	// them.
	maxDocument, maxKeys = 256 << 10, 100
)

// algorithms are those by which Kubernetes signs. None uses a shared secret.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

// keys holds the keys of the cluster. It reads them when the first token arrives. A look at the keys is all that a
// stranger's token can cause outside of this process; its rate is bounded, and tokens that arrive together share one. It
// is safe for concurrent use.
type keys struct {
	client *apiserver.Client
	now    func() time.Time

	mu      sync.Mutex
	signers *signers      // guarded by mu, and immutable; nil before the first look that succeeds
	looking chan struct{} // guarded by mu: closed at the end of the look in progress; nil without one
	next    time.Time     // guarded by mu: when the next look may begin
	failed  error         // guarded by mu: why the last look failed; nil if it did not
}

// verify returns the expiry of a token that a key of the cluster signed, for our audience, and that is valid now. Errors
// wrap ErrRefused, or ErrUnknown if the keys cannot be read, and contain no part of the token.
func (k *keys) verify(ctx context.Context, token string) (time.Time, error) {
	signed, err := jwt.ParseSigned(token, algorithms)
	if err != nil || len(signed.Headers) != 1 || signed.Headers[0].KeyID == "" {
		return time.Time{}, fmt.Errorf("%w: it does not have the form of a Kubernetes token", ErrRefused)
	}
	if s := k.read(ctx); s != nil {
		if expires, err := s.verify(signed, k.now()); !errors.Is(err, errForeign) {
			return expires, err
		}
	}
	s, err := k.newest(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return s.verify(signed, k.now())
}

// read returns the latest keys, or nil before the first look. If they are old, it begins another look and does not wait
// for it: TokenReview refuses what a withdrawn key signed in any case.
func (k *keys) read(ctx context.Context) *signers {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.signers != nil && k.now().Sub(k.signers.read) >= keysFresh {
		k.begin(ctx)
	}
	return k.signers
}

// newest returns the keys after another look, or those of the last look if that is less than lookEvery ago.
func (k *keys) newest(ctx context.Context) (*signers, error) {
	k.mu.Lock()
	looking := k.begin(ctx)
	k.mu.Unlock()
	if looking != nil {
		select {
		case <-looking:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed != nil {
		return nil, fmt.Errorf("%w: the keys of its service accounts cannot be read: %w", ErrUnknown, k.failed)
	}
	return k.signers, nil
}

// begin begins a look, unless one is in progress or the last one began less than lookEvery ago. It returns the channel
// that the look in progress closes at its end, or nil without one. The caller holds mu.
func (k *keys) begin(ctx context.Context) chan struct{} {
	if now := k.now(); k.looking == nil && !now.Before(k.next) {
		k.looking, k.next = make(chan struct{}), now.Add(lookEvery)
		go k.look(context.WithoutCancel(ctx), k.looking) // others may wait for it after this caller has left
	}
	return k.looking
}

// look reads the keys, and closes done.
func (k *keys) look(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	issuer, found, err := k.ask(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.looking, k.failed = nil, err; err == nil {
		k.signers = k.signers.replaced(issuer, found, k.now())
	}
	close(done)
}

// ask asks the API server for its issuer and its keys. It leaves out keys of a kind that is unknown here.
func (k *keys) ask(ctx context.Context) (issuer string, found []jose.JSONWebKey, err error) {
	issuer, raw, err := k.client.Issuer(ctx)
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	switch {
	case apiserver.IsNotFound(err):
		return "", nil, fmt.Errorf("it publishes none: its --service-account-issuer must be an https URL: %w", err)
	case err != nil:
		return "", nil, err
	case issuer == "":
		return "", nil, errors.New("it does not name its issuer")
	case len(raw) > maxDocument:
		return "", nil, fmt.Errorf("they have %d bytes, more than %d", len(raw), maxDocument)
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return "", nil, err
	}
	for _, one := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(one, &key) == nil && key.KeyID != "" && key.IsPublic() && key.Valid() {
			found = append(found, key)
		}
	}
	if len(found) == 0 || len(found) > maxKeys {
		return "", nil, fmt.Errorf("%d of them can verify a token: want 1 to %d", len(found), maxKeys)
	}
	return issuer, slices.Clip(found), nil
}
