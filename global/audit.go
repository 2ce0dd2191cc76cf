package global

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/tokens"
)

// Verbs of zones at the KDS port, in the audit log.
const (
	tryConnect = "connect"
	trySession = "session"
	tryJoin    = "join"
	tryRenew   = "renew"
	trySend    = "send"
	// doRetire is an action of the global itself.
	doRetire = "retire"
)

// auditEvent is a zone's attempt, or an action of the global itself. HTTP requests are audited elsewhere.
type auditEvent struct {
	Verb string
	// Zone is the caller or the subject. Method is how it proved, or tried to prove, its identity.
	Zone   string
	Method access.Method
	// Err is the reason for a refusal or failure; nil for success.
	Err error
	// Details are further facts, by name.
	Details map[string]string
	// intent was recorded before the action; nil if none was.
	intent *access.Intent
}

// auditor writes events to the audit log and to the server log. A nil audit log discards them.
type auditor struct {
	audit *access.Log
	log   *slog.Logger
}

// begin records the intent of an action. If it fails, the caller must not act. The caller records the event afterwards.
func (a auditor) begin(ctx context.Context, e *auditEvent) (err error) {
	if e.intent, err = a.audit.Begin(e.entry(addressOf(ctx))); err != nil {
		a.log.Error("the audit log cannot be written", "error", err)
	}
	return err
}

// record records an event durably. If it fails, the caller must not acknowledge the event.
func (a auditor) record(ctx context.Context, e auditEvent) error {
	entry := e.entry(addressOf(ctx))
	entry.Mark(e.intent)
	if e.Err == nil {
		a.log.Info("zone: "+e.Verb, "zone", e.Zone, "method", e.Method, "from", entry.From)
	} else {
		a.log.Warn("zone: refused to "+e.Verb, "zone", e.Zone, "method", e.Method, "from", entry.From, "reason",
			entry.Details["reason"], "error", e.Err)
	}
	err := a.audit.Record(ctx, entry)
	if err != nil {
		a.log.Error("the audit log cannot be written", "error", err)
	}
	return err
}

// entry returns the event as an entry of the audit log.
func (e *auditEvent) entry(from string) access.Entry {
	entry := access.Entry{
		Event: access.EventZone, Outcome: access.Done, Method: e.Method, From: from,
		Verb: e.Verb, Type: string(resources.TypeZone), Name: e.Zone, Details: maps.Clone(e.Details),
	}
	if e.Zone != "" {
		entry.User = "zone:" + e.Zone
	}
	switch e.Verb {
	case doRetire:
		entry.Event, entry.Type, entry.Name = access.EventRotate, resources.AccessKey, enrolment.AuthoritySecret
	case tryConnect:
		entry.Event = access.EventLogin
	}
	if e.Err == nil {
		return entry
	}
	entry.Outcome, entry.Reason = access.Failed, e.Err.Error()
	for _, refusal := range []error{kds.ErrUnauthenticated, kds.ErrNotAllowed, kds.ErrRequest, kds.ErrNoClientID,
		kds.ErrZoneName} {
		if errors.Is(e.Err, refusal) {
			entry.Outcome = access.Denied
		}
	}
	var hidden *refusedToken
	if errors.As(e.Err, &hidden) {
		if entry.Details == nil {
			entry.Details = map[string]string{}
		}
		entry.Details["reason"] = tokens.Reason(hidden.why)
	}
	return entry
}

// Observe implements kds.Observer. It records sessions that ended because the zone claimed to be another, and resources
// that zones may not send. Both have already been refused.
func (a *admission) Observe(e kds.Event) {
	switch {
	case e.Kind == kds.SessionEnded && errors.Is(e.Err, kds.ErrNotAllowed):
		_ = a.audit.record(context.Background(), auditEvent{Verb: trySession, Zone: e.Zone, Err: e.Err})
	case e.Kind == kds.Forbidden:
		first := e.Refusals[0]
		_ = a.audit.record(context.Background(), auditEvent{
			Verb: trySend, Zone: e.Zone, Err: fmt.Errorf("%w: %s", kds.ErrNotAllowed, first.Reason),
			Details: map[string]string{"type": string(e.Type), "resources": strconv.Itoa(e.Resources), "first": first.Name},
		})
	}
}

// unaudited returns the error for an action that could not be recorded.
func unaudited(err error) error {
	return fmt.Errorf("nothing is given out while the audit log cannot be written: %w", err)
}
