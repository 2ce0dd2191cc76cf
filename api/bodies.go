package api

import (
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/causeway-mesh/causeway/access"
)

// Limits on the bodies of one user that the server is reading. Many clients of one program stay below them. A user who
// starts bodies and never finishes them leaves room for others.
const (
	maxBodiesOfUser     = 64
	maxBodyBytesOfUser  = 32 << 20
	retryAfterBodies    = "1"
	tooManyBodiesAdvice = "finish or close some of them, send larger changes one after another, and try again"
)

// bodies counts the bodies in progress, by user.
type bodies struct {
	mu   sync.Mutex
	held map[string]*held // guarded by mu, as are its values; a user without bodies has no entry
}

type held struct {
	bodies int
	bytes  int64
}

// body is the body of one request. Like all bodies, it is not safe for concurrent use.
type body struct {
	io.ReadCloser
	of     *bodies
	user   string
	answer http.Header
	read   int64
	// ended means that the body is no longer read, and that the bytes read so far stay in memory.
	ended bool
}

// acquire counts a request's body against its user's limits: the body until it is read, its bytes until the request
// ends. The caller must then call done. An error becomes a 429, which closes the connection: without that, the response
// would wait for a part of the rest of the body, which may never come.
func (b *bodies) acquire(answer http.Header, r *http.Request) (done func(), err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}, nil
	}
	one := &body{ReadCloser: r.Body, of: b, user: access.SubjectOf(r.Context()).Budget(), answer: answer}
	if !one.add(1, 0) {
		return nil, one.refuse("you have %d requests whose bodies are incomplete, the maximum: "+tooManyBodiesAdvice,
			maxBodiesOfUser)
	}
	r.Body = one
	return func() {
		one.end()
		one.add(0, -one.read)
	}, nil
}

// add reports whether the user has room. If not, it adds nothing.
func (b *body) add(bodies int, bytes int64) bool {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	h := b.of.held[b.user]
	if h == nil {
		h = &held{}
		b.of.held[b.user] = h
	}
	if bodies > 0 && h.bodies+bodies > maxBodiesOfUser || bytes > 0 && h.bytes+bytes > maxBodyBytesOfUser {
		return false
	}
	h.bodies, h.bytes = h.bodies+bodies, h.bytes+bytes
	if *h == (held{}) {
		delete(b.of.held, b.user)
	}
	return true
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.add(0, int64(n)) {
		return 0, b.refuse("the bodies of your requests exceed %d bytes in total: "+tooManyBodiesAdvice,
			maxBodyBytesOfUser)
	}
	b.read += int64(n)
	if err != nil {
		b.end()
	}
	return n, err
}

func (b *body) end() {
	if !b.ended {
		b.ended = true
		b.add(-1, 0)
	}
}

func (b *body) refuse(format string, most int) error {
	hangUp(b.answer)
	b.answer.Set("Retry-After", retryAfterBodies)
	return tooMuch(format, most)
}

func tooMuch(format string, most int) error {
	return NewError(http.StatusTooManyRequests, "Too Many Requests", fmt.Sprintf(format, most))
}
