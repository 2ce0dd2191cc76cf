package podtoken

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

const (
	// maxToken bounds a token, in bytes.
	maxToken = 8 << 10
	// askTime bounds one question. A proxy whose token is not judged by then tries again.
	askTime = 4 * time.Second
	// maxCalls bounds the questions at one time, maxKnown the tokens that are remembered.
	maxCalls, maxKnown = 16, 8192
	// goodFor is how long a good token needs no other question: long enough for the streams that a proxy opens together,
	// and what a pod that was deleted may gain. badFor and unknownFor keep what knocks again and again from the API server.
	goodFor, badFor, unknownFor = 10 * time.Second, 10 * time.Second, time.Second
)

// compact matches a JSON Web Token in its compact form.
var compact = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// Checker asks an API server about tokens. It is safe for concurrent use.
type Checker struct {
	client *apiserver.Client
	now    func() time.Time
	calls  chan struct{}

	mu    sync.Mutex
	known map[[sha256.Size]byte]*answer // guarded by mu
}

// answer is what is known of one token. What it says is set before done is closed.
type answer struct {
	done  chan struct{}
	pod   Pod
	err   error
	until time.Time // guarded by the Checker's mu; zero while the question is open
}

// New returns a checker. now is the clock.
func New(client *apiserver.Client, now func() time.Time) *Checker {
	return &Checker{client: client, now: now, calls: make(chan struct{}, maxCalls), known: map[[sha256.Size]byte]*answer{}}
}

// Check returns the pod that a token proves. Errors wrap ErrRefused or ErrUnknown, and hold nothing of the token.
// Questions about one token at one time are one question.
func (c *Checker) Check(ctx context.Context, token string) (Pod, error) {
	if len(token) > maxToken || !compact.MatchString(token) {
		return Pod{}, fmt.Errorf("%w: it is malformed", ErrRefused)
	}
	a, mine, err := c.answer(sha256.Sum256([]byte(token)))
	if err != nil {
		return Pod{}, err
	}
	if mine { // others may wait for it when this caller has gone
		go c.ask(context.WithoutCancel(ctx), token, a)
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return Pod{}, fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	}
	if a.err == nil && !c.now().Before(a.pod.Expires) {
		return Pod{}, fmt.Errorf("%w: it has expired", ErrRefused)
	}
	return a.pod, a.err
}

// answer returns what is known or asked of a token. mine means that the caller has to ask.
func (c *Checker) answer(key [sha256.Size]byte) (a *answer, mine bool, err error) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.known[key]; a != nil && (a.until.IsZero() || now.Before(a.until)) {
		return a, false, nil
	}
	if len(c.known) >= maxKnown {
		for other, a := range c.known {
			if !a.until.IsZero() && !now.Before(a.until) {
				delete(c.known, other)
			}
		}
		if len(c.known) >= maxKnown {
			return nil, false, fmt.Errorf("%w: too many tokens are being judged", ErrUnknown)
		}
	}
	a = &answer{done: make(chan struct{})}
	c.known[key] = a
	return a, true, nil
}

// ask asks the API server and settles the answer.
func (c *Checker) ask(ctx context.Context, token string, a *answer) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	a.pod, a.err = c.review(ctx, token)
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

func (c *Checker) review(ctx context.Context, token string) (Pod, error) {
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
	return podOf(user, token)
}
