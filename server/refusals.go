package server

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// acceptPause is the longest pause between two attempts to accept a connection.
	acceptPause = time.Second
	// acceptQuiet is how long the log omits a repeated message.
	acceptQuiet = time.Minute
)

// refused tracks the connections that the system did not let a listener accept.
type refused struct {
	count uint64
	err   error
	// since is when the failures began, last when one last happened, and logged when it was last logged.
	since, last, logged time.Time
	log                 *slog.Logger
}

// refuse records that the system failed to accept a connection.
func (c *crowd) refuse(err error, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.refused
	if !r.lasts(now) {
		r.since = now
	}
	r.count++
	r.err, r.last = err, now
	if r.log != nil && now.Sub(r.logged) > acceptQuiet {
		r.logged = now
		r.log.Error("cannot accept connections: clients wait or are refused", "address", c.Addr().String(), "error", err)
	}
}

// recovers records that the system accepts connections again.
func (c *crowd) recovers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.refused
	r.last = time.Time{}
	if r.log != nil && !r.logged.IsZero() {
		r.log.Info("accepting connections again", "address", c.Addr().String(), "failures", r.count, "since", r.since)
		r.logged = time.Time{}
	}
}

// lasts reports whether accepting currently fails. It is retried within a pause.
func (r *refused) lasts(now time.Time) bool { return r.count > 0 && now.Sub(r.last) <= 2*acceptPause }

// AddListeners reports in the log, the metrics and readiness when the system does not let the listeners of Listen and
// ListenOpen accept connections, for example because file descriptors or memory run out.
func (d *Diagnostics) AddListeners(log *slog.Logger, listeners ...net.Listener) {
	var crowds []*crowd
	for _, l := range listeners {
		if c, ok := l.(*crowd); ok {
			c.mu.Lock()
			c.refused.log = log
			c.mu.Unlock()
			crowds = append(crowds, c)
		}
	}
	d.AddCheck("connections", func() error {
		for _, c := range crowds {
			if err := c.refusing(time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	d.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "causeway_accept_failures_total",
		Help: "Failed attempts to accept a connection, as when file descriptors run out.",
	}, func() (all float64) {
		for _, c := range crowds {
			c.mu.Lock()
			all += float64(c.refused.count)
			c.mu.Unlock()
		}
		return all
	}))
}

// refusing returns why no connections are accepted now, or nil.
func (c *crowd) refusing(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.refused.lasts(now) {
		return nil
	}
	return fmt.Errorf("cannot accept connections at %s since %s: %w", c.Addr(),
		c.refused.since.UTC().Format(time.RFC3339), c.refused.err)
}
