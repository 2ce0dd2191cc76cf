package podtoken

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

const (
	// maxToken limits a token, in bytes.
	maxToken = 8 << 10
	// askTime limits one request. A proxy whose token is not judged by then tries again.
	askTime = 4 * time.Second
	// maxCalls limits the concurrent requests, maxKnown the cached tokens. At maxKnown, the checker makes room for
	// spare more.
	maxCalls, maxKnown, spare = 16, 8192, 1024
	// goodFor is how long a valid token needs no other request: long enough for the streams that a proxy opens
	// together, and the maximum gain of a deleted pod. badFor and unknownFor limit the requests of a pod that keeps
	// trying.
	goodFor, badFor, unknownFor = 10 * time.Second, 10 * time.Second, time.Second
)

// compact matches a JSON Web Token in its compact form.
var compact = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// Checker asks an API server about tokens. It is safe for concurrent use.
type Checker struct {
	client *apiserver.Client
	now    func() time.Time
	keys   *keys
	calls  chan struct{}

	mu    sync.Mutex
	known map[[sha256.Size]byte]*answer // guarded by mu; only tokens that keys has verified
}

// answer is what is known of one token. What it says is set before done is closed.
type answer struct {
	done  chan struct{}
	pod   Pod
	err   error
	until time.Time // guarded by the Checker's mu; zero while the question is open
}

// open reports whether the question has no answer yet.
func (a *answer) open() bool { return a.until.IsZero() }

// New returns a checker. now is the clock. It asks nothing before it has a token to check.
func New(client *apiserver.Client, now func() time.Time) *Checker {
	return &Checker{client: client, now: now, keys: &keys{client: client, now: now}, calls: make(chan struct{}, maxCalls),
		known: map[[sha256.Size]byte]*answer{}}
}

// Check returns the pod that a token proves. Errors wrap ErrRefused or ErrUnknown, and contain no part of the token. It
// requests and caches only currently valid tokens that a key of the cluster signed for our audience. Concurrent checks
// of one token share a request.
func (c *Checker) Check(ctx context.Context, token string) (Pod, error) {
	if len(token) > maxToken || !compact.MatchString(token) {
		return Pod{}, fmt.Errorf("%w: it is malformed", ErrRefused)
	}
	key := sha256.Sum256([]byte(token))
	a := c.find(key)
	if a == nil {
		expires, err := c.keys.verify(ctx, token)
		if err != nil {
			return Pod{}, err
		}
		var mine bool
		if a, mine, err = c.answer(key); err != nil {
			return Pod{}, err
		}
		if mine { // others may wait for it after this caller has left
			go c.ask(context.WithoutCancel(ctx), token, expires, a)
		}
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return Pod{}, fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	}
	if a.err == nil && !c.now().Before(a.pod.Expires) {
		return Pod{}, ErrExpired
	}
	return a.pod, a.err
}

// find returns the answer, or the open question, about a token; nil without one.
func (c *Checker) find(key [sha256.Size]byte) *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current(key)
}

// current is find for a caller that holds mu.
func (c *Checker) current(key [sha256.Size]byte) *answer {
	if a := c.known[key]; a != nil && (a.open() || c.now().Before(a.until)) {
		return a
	}
	return nil
}

// answer is find for a token that is verified. Without an answer it returns a new question, which is mine: the caller has
// to ask.
func (c *Checker) answer(key [sha256.Size]byte) (a *answer, mine bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.current(key); a != nil {
		return a, false, nil
	}
	if len(c.known) >= maxKnown && !c.makeRoom() {
		return nil, false, fmt.Errorf("%w: too many tokens of pods are being judged", ErrUnknown)
	}
	a = &answer{done: make(chan struct{})}
	c.known[key] = a
	return a, true, nil
}

// makeRoom forgets expired answers, and then others if these are too few: a pod's next token is asked about again. It
// keeps open questions, and reports whether there is room now. The caller holds mu.
func (c *Checker) makeRoom() bool {
	now := c.now()
	maps.DeleteFunc(c.known, func(_ [sha256.Size]byte, a *answer) bool { return !a.open() && !now.Before(a.until) })
	for key, a := range c.known {
		if len(c.known) <= maxKnown-spare {
			break
		}
		if !a.open() {
			delete(c.known, key)
		}
	}
	return len(c.known) < maxKnown
}

// ask asks the API server about a token that ends at expires, and settles the answer.
func (c *Checker) ask(ctx context.Context, token string, expires time.Time, a *answer) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	a.pod, a.err = c.review(ctx, token, expires)
	life := goodFor
	switch {
	case errors.Is(a.err, ErrUnknown):
		life = unknownFor
	case a.err != nil:
		life = badFor
	}
	c.mu.Lock()
	a.until = c.now().Add(life)
	c.mu.Unlock()
	close(a.done)
}

func (c *Checker) review(ctx context.Context, token string, expires time.Time) (Pod, error) {
	select {
	case c.calls <- struct{}{}:
		defer func() { <-c.calls }()
	case <-ctx.Done():
		return Pod{}, fmt.Errorf("%w: too many questions wait", ErrUnknown)
	}
	user, ok, err := c.client.Authenticate(ctx, token, Audience)
	switch {
	case err != nil:
		return Pod{}, fmt.Errorf("%w: %w", ErrUnknown, err)
	case !ok:
		return Pod{}, fmt.Errorf("%w: the API server does not accept it", ErrRefused)
	}
	return podOf(user, expires)
}
