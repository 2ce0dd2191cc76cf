package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// heard is a sink that keeps what it hears.
type heard struct {
	mu       sync.Mutex
	replaced int
	failed   []error
	objects  map[Name]string // of their resourceVersions
}

func (h *heard) Replace(all []*Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replaced++
	h.objects = map[Name]string{}
	for _, o := range all {
		h.objects[o.ID()] = o.Meta.ResourceVersion
	}
}

func (h *heard) Changed(o *Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects[o.ID()] = o.Meta.ResourceVersion
}

func (h *heard) Deleted(o *Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.objects, o.ID())
}

func (h *heard) Failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = append(h.failed, err)
}

func (h *heard) Resumed() {}

// until polls a condition of what was heard.
func (h *heard) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		h.mu.Lock()
		is := ok()
		h.mu.Unlock()
		if is {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// follow follows things until the test ends.
func follow(t *testing.T, h http.HandlerFunc) *heard {
	t.Helper()
	c, _ := connected(t, h)
	sink := &heard{objects: map[Name]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Follow(ctx, things, "", sink)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return sink
}

const oneThing = `{"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "x", "resourceVersion": "9"}}]}`

// TestRestoredFromABackup serves a revision that is lower than the one that is watched from.
func TestRestoredFromABackup(t *testing.T) {
	for _, answer := range []string{`{"code": 504, "reason": "Timeout", "message": "Too large resource version: 9, current: 5"}`,
		`{"code": 410, "reason": "Expired", "message": "too old resource version"}`} {
		var lists atomic.Int32
		sink := follow(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Query().Get("watch") == "" && lists.Add(1) == 1:
				fmt.Fprint(w, oneThing)
			case r.URL.Query().Get("watch") == "":
				fmt.Fprint(w, `{"metadata": {"resourceVersion": "5"}, "items": []}`)
			case r.URL.Query().Get("resourceVersion") == "9":
				fmt.Fprintf(w, `{"type": "ERROR", "object": %s}`, answer)
			default:
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		})
		sink.until(t, "the list after "+answer, func() bool { return sink.replaced == 2 && len(sink.objects) == 0 })
	}
}

// TestAlwaysExpired answers every second page with 410: the client says that it cannot follow, and asks ever less.
func TestAlwaysExpired(t *testing.T) {
	var asked atomic.Int32
	sink := follow(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Query().Get("continue") == "" {
			fmt.Fprint(w, `{"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [{"metadata": {"name": "x"}}]}`)
			return
		}
		w.WriteHeader(http.StatusGone)
		fmt.Fprint(w, `{"code": 410, "reason": "Expired", "message": "The provided continue parameter is too old"}`)
	})
	sink.until(t, "two failures", func() bool { return len(sink.failed) == 2 })
	if n := asked.Load(); n > 20 || sink.replaced != 0 {
		t.Errorf("%d requests, %d partial lists", n, sink.replaced)
	}
}

// TestEndlessEvent sends an event that does not end: after twice as much as an event may have, nothing more comes.
func TestEndlessEvent(t *testing.T) {
	sink := follow(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, oneThing)
			return
		}
		fmt.Fprint(w, `{"type": "ADDED", "object": {"metadata": {"name": "`)
		chunk := []byte(strings.Repeat("x", 1<<20))
		for range 2 * maxAnswer / len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
		<-r.Context().Done()
	})
	sink.until(t, "a failure", func() bool {
		return len(sink.failed) > 0 && strings.Contains(sink.failed[0].Error(), "an event has more than")
	})
}

// FuzzEvents reads any text as a page of a list, and as events of a watch. What is read has a name, and a page that is not
// whole is an error.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(oneThing))
	f.Add([]byte(`{"items": null}`))
	f.Add([]byte(`{"type": "ADDED", "object": {"metadata": {"name": "x", "resourceVersion": "1"}}}{"type": "BOOKMARK", "object": {}}`))
	f.Add([]byte(`{"type": "ERROR", "object": {"code": 410}}`))
	f.Add([]byte(`{"type": "DELETED", "object": null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := &page{}
		err := p.read(json.NewDecoder(strings.NewReader(string(raw))))
		for _, o := range p.items {
			if o.Meta.Name == "" {
				t.Error("an item without a name")
			}
		}
		if err == nil && !json.Valid(raw[:len(raw)-len(trailing(raw))]) {
			t.Errorf("part of a page is read: %s", raw)
		}
		sink := &heard{objects: map[Name]string{}}
		w := &following{kind: things, sink: sink, revision: "1"}
		for d := json.NewDecoder(strings.NewReader(string(raw))); ; {
			var e event
			if d.Decode(&e) != nil || w.apply(&e) != nil {
				break
			}
		}
		if _, ok := sink.objects[Name{}]; ok {
			t.Error("an object without a name")
		}
	})
}

// trailing is what follows the first value of a text.
func trailing(raw []byte) []byte {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	var v json.RawMessage
	_ = d.Decode(&v)
	return raw[d.InputOffset():]
}
