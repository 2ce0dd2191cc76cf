package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Sink receives the objects of one kind. One goroutine calls its methods. They must be quick, and may keep the objects.
type Sink interface {
	// Replace receives the complete list: everything else is gone. It is called first, and whenever changes may have
	// been missed.
	Replace([]*Object)
	// Changed receives a new or changed object, Deleted a deleted one, in its last state.
	Changed(*Object)
	Deleted(*Object)
	// Failed is called with the reason when the API server cannot be followed. Its state is then unknown, until
	// Replace, or until Resumed, which means that nothing was missed.
	Failed(error)
	Resumed()
}

// Trimmer is a Sink that reads little of its objects. Trim drops the rest of each listed object as it arrives, so that
// a long list is never held whole.
type Trimmer interface {
	Trim(*Object)
}

// The wait between attempts doubles from minBackoff to maxBackoff, with jitter.
const (
	minBackoff = 200 * time.Millisecond
	maxBackoff = 10 * time.Second
	// watchTime is the minimum duration of a watch. Then it is restarted where it ended.
	watchTime = 5 * time.Minute
)

// Follow lists the objects of a kind, watches them, and reports everything to the sink until ctx ends. selector is a
// field selector, or empty.
func (c *Client) Follow(ctx context.Context, k Kind, selector string, sink Sink) {
	c.FollowIn(ctx, k, "", selector, sink)
}

// FollowIn is Follow for one namespace. It needs no rights in others.
func (c *Client) FollowIn(ctx context.Context, k Kind, namespace, selector string, sink Sink) {
	f := &following{client: c, kind: k, namespace: namespace, selector: selector, sink: sink}
	backoff, expired := minBackoff, false
	for ctx.Err() == nil {
		progressed, err := f.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			backoff, expired = minBackoff, false
			continue
		}
		if isLost(err) {
			f.revision = ""
			if !expired {
				expired = true // list again at once, but only once
				continue
			}
		}
		f.failed = true
		sink.Failed(err)
		if progressed {
			backoff, expired = minBackoff, false
		}
		wait := time.NewTimer(backoff/2 + rand.N(backoff)) //nolint:gosec // jitter is not a secret
		backoff = min(2*backoff, maxBackoff)
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
	}
}

// isLost reports whether the API server cannot watch from a revision: it has forgotten it or, restored from a backup,
// has not reached it. Then only a list gives the state.
func isLost(err error) bool {
	return IsExpired(err) || codeOf(err) == http.StatusBadRequest || codeOf(err) == http.StatusGatewayTimeout
}

// following is one kind that is followed.
type following struct {
	client *Client
	kind   Kind
	// namespace is empty for all.
	namespace string
	selector  string
	sink      Sink
	// revision is where the next watch begins; empty before a list.
	revision string
	failed   bool
}

// once lists if necessary, and then watches until the watch ends. progressed is set if the API server answered
// anything.
func (f *following) once(ctx context.Context) (progressed bool, err error) {
	if f.revision == "" {
		var trim func(*Object)
		if t, ok := f.sink.(Trimmer); ok {
			trim = t.Trim
		}
		all, revision, err := f.client.list(ctx, f.kind, f.namespace, f.selector, trim)
		if err != nil {
			return false, err
		}
		f.revision, f.failed = revision, false
		f.sink.Replace(all)
	}
	begun, at := f.revision, time.Now()
	err = f.watch(ctx)
	progressed = f.revision != begun
	if err == nil && !progressed && time.Since(at) < time.Second {
		err = fmt.Errorf("watch of %s: it ended at once", f.kind.Plural)
	}
	return progressed, err
}

func (f *following) watch(ctx context.Context) error {
	seconds := int((watchTime + rand.N(watchTime)).Seconds()) //nolint:gosec // jitter is not a secret
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds+30)*time.Second)
	defer cancel()
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {f.revision},
		"timeoutSeconds": {strconv.Itoa(seconds)}}
	if f.selector != "" {
		query.Set("fieldSelector", f.selector)
	}
	answer, err := f.client.send(ctx, http.MethodGet, f.kind.path(f.namespace, "", ""), query, "", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if f.failed {
		f.failed = false
		f.sink.Resumed()
	}
	body := &bounded{from: answer.Body}
	events := json.NewDecoder(body)
	for {
		var e event
		body.left = maxAnswer
		if err := events.Decode(&e); err != nil {
			if errors.Is(err, io.EOF) {
				return nil // its time was over
			}
			return fmt.Errorf("watch of %s: %w", f.kind.Plural, err)
		}
		if err := f.apply(&e); err != nil {
			return err
		}
	}
}

// bounded reads at most left bytes.
type bounded struct {
	from io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("an event has more than %d bytes", maxAnswer)
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func (f *following) apply(e *event) error {
	switch e.Type {
	case "ERROR":
		var s status
		if err := json.Unmarshal(e.Object, &s); err != nil {
			return err
		}
		return &Error{Code: s.Code, Reason: s.Reason, Message: s.Message}
	case "BOOKMARK":
		var head struct {
			Metadata Metadata `json:"metadata"`
		}
		if err := json.Unmarshal(e.Object, &head); err != nil {
			return err
		}
		f.revision = head.Metadata.ResourceVersion
		return nil
	}
	o, err := Parse(e.Object)
	if err != nil {
		return err
	}
	switch e.Type {
	case "ADDED", "MODIFIED":
		f.sink.Changed(o)
	case "DELETED":
		f.sink.Deleted(o)
	default:
		return fmt.Errorf("watch of %s: unknown event %q", f.kind.Plural, e.Type)
	}
	f.revision = o.Meta.ResourceVersion
	return nil
}
