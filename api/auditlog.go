package api

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

// AuditPage is the response to `GET /_audit`: entries, oldest first.
type AuditPage struct {
	Entries []access.Entry `json:"entries"`
	// Next is the value of `after` for the next page.
	Next uint64 `json:"next"`
	// More reports whether there are more entries already.
	More bool `json:"more"`
}

const (
	// maxAuditPage bounds the entries of one response.
	maxAuditPage = 1000
	// maxAuditWait bounds how long a request may wait for an entry.
	maxAuditWait = 30 * time.Second
)

// auditQuery is a parsed query of the audit log.
type auditQuery struct {
	access.LogQuery
	// last selects only the last entries, up to that number. Otherwise limit selects the first entries after the
	// cursor.
	last, limit int
	wait        time.Duration
}

// parseAudit reads `since` (a time or a duration), `user`, `type`, `mesh`, `namespace`, `name`, `event`, `outcome`,
// `after`, `last`, `limit` and `wait`.
func parseAudit(q url.Values, now time.Time) (*auditQuery, error) {
	out := &auditQuery{limit: maxAuditPage}
	out.User, out.Event, out.Outcome, out.Type = q.Get("user"), q.Get("event"), q.Get("outcome"), q.Get("type")
	out.Mesh, out.Namespace, out.Name = q.Get("mesh"), q.Get("namespace"), q.Get("name")
	if err := out.checkNames(); err != nil {
		return nil, err
	}
	if text := q.Get("since"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if ago, notAgo := time.ParseDuration(text); notAgo == nil {
			at, err = now.Add(-ago), nil
		}
		if err != nil {
			return nil, BadField("since", "want a duration such as 1h, or a time such as 2026-01-02T15:04:05Z, got %q", text)
		}
		out.Since = at
	}
	var err error
	if text := q.Get("after"); text != "" {
		if out.After, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, BadField("after", "want the value of next of a page, got %q", text)
		}
	}
	for name, into := range map[string]*int{"last": &out.last, "limit": &out.limit} {
		if text := q.Get(name); text != "" {
			if *into, err = strconv.Atoi(text); err != nil || *into < 1 || *into > maxAuditPage {
				return nil, BadField(name, "want 1 to %d, got %q", maxAuditPage, text)
			}
		}
	}
	if text := q.Get("wait"); text != "" {
		if out.wait, err = time.ParseDuration(text); err != nil || out.wait < 0 || out.wait > maxAuditWait {
			return nil, BadField("wait", "want a duration of at most %s, got %q", maxAuditWait, text)
		}
	}
	return out, nil
}

// checkNames refuses kinds of entries that no log contains, because an empty response would mean nothing. A path of a
// type becomes the type.
func (q *auditQuery) checkNames() error {
	if d, ok := resources.LookupPath(q.Type); ok {
		q.Type = string(d.Type)
	}
	types := resources.AccessThings()
	for _, d := range resources.Descriptors() {
		types = append(types, string(d.Type))
	}
	for _, one := range []struct {
		field, value string
		known        []string
	}{{"event", q.Event, access.Events()}, {"outcome", q.Outcome, access.Outcomes()}, {"type", q.Type, types}} {
		if one.value != "" && !slices.Contains(one.known, one.value) {
			return BadField(one.field, "there is no %s %q%s", one.field, one.value, resources.Suggestion(one.value, one.known))
		}
	}
	return nil
}

// auditLog responds with entries from the files. With `wait` it responds once there is an entry or the time is over.
func (s *Server) auditLog(w http.ResponseWriter, r *http.Request) error {
	q, err := parseAudit(r.URL.Query(), s.config.Now())
	if err != nil {
		return err
	}
	if s.config.Guard == nil || s.config.Guard.Audit() == nil {
		return NotFound("audit log on this server")
	}
	log := s.config.Guard.Audit()
	if q.wait > 0 {
		leave, err := s.watches.enter(r.Context())
		if err != nil {
			return err
		}
		defer leave()
	}
	deadline := time.NewTimer(q.wait)
	defer deadline.Stop()
	for {
		changed := log.Changed()
		page, err := s.readAudit(r, log, q)
		if err != nil {
			return err
		}
		if len(page.Entries) > 0 || q.wait == 0 {
			return WriteJSON(w, http.StatusOK, page)
		}
		q.After = page.Next
		select {
		case <-changed:
			if asked := access.AskedOf(r.Context()); asked.Again != nil { // the entry may be that they were shut out
				if err := asked.Again(); err != nil {
					return err
				}
			}
		case <-deadline.C:
			return WriteJSON(w, http.StatusOK, page)
		case <-s.draining:
			return WriteJSON(w, http.StatusOK, page)
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

// readAudit reads one page, in the caller's turn: it reads files, which may be large. A request that waits for an entry
// holds no turn meanwhile.
func (s *Server) readAudit(r *http.Request, log *access.Log, q *auditQuery) (*AuditPage, error) {
	done, err := s.inflight.acquire(r.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	if err := again(r.Context()); err != nil {
		return nil, err
	}
	page, end := &AuditPage{Entries: []access.Entry{}, Next: q.After}, log.Settled()
	defer func() {
		if !page.More { // a reader who continues does not go through what the query leaves out again
			page.Next = max(page.Next, end)
		}
	}()
	if q.last > 0 {
		last, err := log.Last(q.LogQuery, q.last)
		if len(last) > 0 {
			page.Entries, page.Next = last, last[len(last)-1].Seq
		}
		return page, err
	}
	err = log.Read(q.LogQuery, func(e access.Entry) bool {
		if len(page.Entries) == q.limit {
			page.More = true
			return false
		}
		page.Entries = append(page.Entries, e)
		page.Next = e.Seq
		return true
	})
	return page, err
}
