package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources/store"
)

// changes reports whether requests with the method may change something.
func changes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// admit authenticates the caller. The returned request carries the caller's identity, even if admit refuses it.
func (s *Server) admit(r *http.Request) (*http.Request, error) {
	asked := &access.Asked{Subject: access.Anonymous()}
	asked.Entry.Request, asked.Entry.From = r.Method+" "+r.URL.Path, r.RemoteAddr
	r = r.WithContext(access.WithAsked(r.Context(), asked))
	if s.config.Guard == nil {
		return r, nil
	}
	if changes(r.Method) {
		if err := checkContentType(r); err != nil {
			return r, err
		}
	}
	var err error
	var proof access.Proof
	if len(s.proofs) > 0 {
		_, pattern := s.mux.Handler(r)
		proof = s.proofs[pattern]
	}
	asked.Judged = time.Now()
	asked.Subject, err = s.config.Guard.Admit(r, proof)
	return r, err
}

// checkContentType refuses the content types that a page of another site can make a browser send without a preflight
// request: forms and text.
func checkContentType(r *http.Request) error {
	if r.Header.Get("Content-Type") == "" && r.ContentLength == 0 {
		return nil
	}
	_, err := bodyFormat(r.Header)
	return err
}

// note sets the subject of the request's audit line. Without an event there is no line, unless the request is refused.
func note(ctx context.Context, event string, a access.Action) {
	if asked := access.AskedOf(ctx); asked != nil {
		asked.Entry.Event = event
		asked.Entry.About(a)
	}
}

// noteCommit adds the result of a write to the audit line. A write that changed nothing gets no line.
func noteCommit(ctx context.Context, commit *store.Commit) {
	asked := access.AskedOf(ctx)
	if asked == nil || commit == nil {
		return
	}
	if len(commit.Changes) == 0 {
		asked.Entry.Event = ""
		return
	}
	asked.Entry.Revision, asked.Entry.Changes = commit.Revision, access.Changes(commit)
}

// audited runs a handler that may change something, and delays its response until the audit line is durable. If the
// audit log is not writable, the handler does not run, unless the request only asks. If the log becomes unwritable
// after the change, the response reports the change with a warning. Only a response that would hand out a credential, a
// secret or a backup is withheld.
func (s *Server) audited(w http.ResponseWriter, r *http.Request, row *Row, h HandlerFunc) error {
	if s.config.Guard == nil || s.config.Guard.Audit() == nil {
		return h(w, r)
	}
	log := s.config.Guard.Audit()
	if !row.asks(r) {
		if err := log.Ready(r.Context()); err != nil {
			return err
		}
	}
	answer := &heldAnswer{header: w.Header()}
	err := h(answer, r)
	asked := access.AskedOf(r.Context())
	if refusal(err) != nil || asked.Entry.Event == "" {
		log.End(asked.Intent)
		if err != nil {
			return err // fail writes the audit line of a refusal
		}
		return answer.send(w)
	}
	insistOnIntent(r, asked)
	if failed := s.record(r.Context(), asked.Subject, outcomeOf(asked, answer, err)); failed != nil && err == nil {
		if givesOut(asked.Entry.Event) {
			return errHeldBack
		}
		Warn(w.Header(), "the audit log could not be written after this change: its line is pending, and further changes are refused until it is written")
	}
	if err != nil {
		return err
	}
	return answer.send(w)
}

// outcomeOf returns the audit line of a handler that succeeded, or failed with err.
func outcomeOf(asked *access.Asked, answer *heldAnswer, err error) access.Entry {
	entry := asked.Entry
	entry.Mark(asked.Intent)
	entry.Outcome, entry.Status = access.Done, answer.status()
	if err == nil {
		return entry
	}
	e := asError(err)
	entry.Outcome, entry.Status, entry.Reason = access.Failed, e.Status, e.Detail
	if e.Outcome == OutcomeUnknown {
		entry.Outcome = access.Unknown
	}
	if len(e.InvalidParameters) > 0 {
		entry.Reason += ": " + e.InvalidParameters[0].Field + ": " + e.InvalidParameters[0].Reason
	}
	return entry
}

// askedBy adds the caller to an entry.
func askedBy(by access.Subject, entry access.Entry) access.Entry {
	if entry.User == "" {
		entry.User = by.Name
	}
	if entry.Method == "" {
		entry.Method = by.Method
	}
	entry.Groups, entry.Credential = by.Groups, by.Credential
	if host, _, err := net.SplitHostPort(entry.From); err == nil {
		entry.From = host
	}
	return entry
}

// record completes an entry and makes it durable.
func (s *Server) record(ctx context.Context, by access.Subject, entry access.Entry) error {
	entry = askedBy(by, entry)
	err := s.config.Guard.Audit().Record(context.WithoutCancel(ctx), entry)
	if err != nil {
		s.config.Log.Error("the audit log cannot be written", "request", entry.Request, "user", entry.User, "error", err)
	}
	return err
}

// refusedFor writes the audit line of an access refusal and returns the error for the response: err, or the error of
// the audit log if it cannot write the line.
func (s *Server) refusedFor(r *http.Request, err error) error {
	asked := access.AskedOf(r.Context())
	if s.config.Guard == nil || asked == nil || errors.Is(err, access.ErrAudit) {
		return err
	}
	answer := refusal(err)
	if answer == nil {
		return err
	}
	entry := asked.Entry
	entry.Event, entry.Outcome, entry.Status, entry.Reason = access.EventDenied, access.Denied, answer.Status, err.Error()
	var denied *access.DeniedError
	var login *access.LoginError
	switch {
	case errors.As(err, &denied):
		entry.Missing = denied.Missing.String()
		entry.About(denied.Missing)
	case errors.As(err, &login):
		entry.Event, entry.User, entry.Method = access.EventLogin, login.Claimed, login.Method
	}
	if failed := s.record(r.Context(), asked.Subject, entry); failed != nil {
		return failed
	}
	return err
}
