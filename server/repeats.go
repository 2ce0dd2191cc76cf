package server

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of logged warnings and errors. A peer that is refused for ever, or a stranger that tries ten thousand times,
// must not push out the rest of the log. Metrics count all of them.
const (
	// alikeBurst similar lines are logged, then one in alikeEvery.
	alikeBurst = 10
	alikeEvery = 30 * time.Second
	// kindBurst lines of a kind, which have the same message, are logged, then kindPerSecond.
	kindBurst     = 100
	kindPerSecond = 2
	// maxAlike bounds how many lines are remembered. Beyond that they are forgotten, and only the limits of kinds
	// apply.
	maxAlike = 1024
	// repeatsAfter is the delay after which the number of omitted lines is logged, unless a similar line is logged
	// before.
	repeatsAfter = time.Minute
)

// identifying lists the attributes that distinguish lines of a kind. Others, such as addresses, ports and counts,
// always differ.
var identifying = map[string]bool{"zone": true, "node": true, "type": true, "mesh": true, "name": true, "reason": true,
	"error": true, "peer": true, "global": true}

// repeats is a slog.Handler that omits repeated warnings and errors, and adds their number to the next of their kind.
type repeats struct {
	slog.Handler
	state *repeated
	// about is the hash of the logger's attributes.
	about uint64
}

// repeated is the state that the handlers of one log share.
type repeated struct {
	// to is the handler that all of them write to, without attributes.
	to   slog.Handler
	seed maphash.Seed
	now  func() time.Time
	// out is what to writes to.
	out *PatientWriter

	mu    sync.Mutex
	alike map[uint64]*rate.Limiter // guarded by mu
	kinds map[string]*kind         // guarded by mu; by message, which is one of our own texts
}

type kind struct {
	limit   *rate.Limiter
	leftOut int
	timer   *time.Timer // nil while nothing is omitted
}

// limitRepeats limits what inner receives, which writes to out.
func limitRepeats(inner slog.Handler, out *PatientWriter, now func() time.Time) slog.Handler {
	return &repeats{inner, &repeated{to: inner, out: out, seed: maphash.MakeSeed(), now: now,
		alike: map[uint64]*rate.Limiter{}, kinds: map[string]*kind{}}, 0}
}

// Handle implements slog.Handler.
func (h *repeats) Handle(ctx context.Context, r slog.Record) error {
	h.state.logLost(ctx)
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	sum := h.about
	r.Attrs(func(a slog.Attr) bool {
		sum = h.state.add(sum, a)
		return true
	})
	leftOut, ok := h.state.allow(&r, sum)
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("leftOut", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	sum := h.about
	for _, a := range attrs {
		sum = h.state.add(sum, a)
	}
	return &repeats{h.Handler.WithAttrs(attrs), h.state, sum}
}

// WithGroup implements slog.Handler.
func (h *repeats) WithGroup(name string) slog.Handler {
	return &repeats{h.Handler.WithGroup(name), h.state, h.about}
}

// add uses a sum, so that the order does not matter.
func (s *repeated) add(sum uint64, a slog.Attr) uint64 {
	if !identifying[a.Key] {
		return sum
	}
	return sum + maphash.String(s.seed, a.Key+"\x00"+a.Value.String())
}

// allow reports whether a line is logged, and how many of its kind were omitted before it.
func (s *repeated) allow(r *slog.Record, about uint64) (leftOut int, ok bool) {
	now := s.now()
	about += maphash.String(s.seed, r.Message)
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[r.Message]
	if k == nil {
		if len(s.kinds) >= maxAlike {
			clear(s.kinds)
		}
		k = &kind{limit: rate.NewLimiter(kindPerSecond, kindBurst)}
		s.kinds[r.Message] = k
	}
	one := s.alike[about]
	if one == nil {
		if len(s.alike) >= maxAlike {
			clear(s.alike)
		}
		one = rate.NewLimiter(rate.Every(alikeEvery), alikeBurst)
		s.alike[about] = one
	}
	if one.AllowN(now, 1) && k.limit.AllowN(now, 1) {
		leftOut, k.leftOut = k.leftOut, 0
		return leftOut, true
	}
	k.leftOut++
	if k.timer == nil {
		level, message := r.Level, r.Message
		k.timer = time.AfterFunc(repeatsAfter, func() { s.logOmitted(k, level, message) })
	}
	return 0, false
}

// logOmitted logs how many lines of a kind were omitted since the last one logged.
func (s *repeated) logOmitted(k *kind, level slog.Level, message string) {
	s.mu.Lock()
	leftOut := k.leftOut
	k.leftOut, k.timer = 0, nil
	s.mu.Unlock()
	if leftOut == 0 {
		return
	}
	r := slog.NewRecord(s.now(), level, message, 0)
	r.AddAttrs(slog.Int("leftOut", leftOut))
	_ = s.to.Handle(context.Background(), r) // like slog, it ignores failures to log
}

// logLost logs how many lines were lost while the log took none, once it takes them again.
func (s *repeated) logLost(ctx context.Context) {
	lines, since := s.out.TakeLost()
	if lines == 0 {
		return
	}
	r := slog.NewRecord(s.now(), slog.LevelWarn, "the log took no lines for a while: some are lost", 0)
	r.AddAttrs(slog.Uint64("lines", lines), slog.Time("since", since.UTC()))
	_ = s.to.Handle(ctx, r)
}
