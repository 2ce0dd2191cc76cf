package abuse

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// minimum is the least number of attempts in the table.
const minimum = 80

// TestAbuse tries every row: the attempt is refused with its status and leaves its line in the audit log, and the twin
// succeeds.
func TestAbuse(t *testing.T) {
	t.Parallel()
	rows := rowsOf(t)
	if len(rows) < minimum {
		t.Errorf("the table has %d rows, want at least %d", len(rows), minimum)
	}
	w := newWorld(t)
	w.makeCredentials()
	w.makeCurious()
	for i := range rows {
		r := &rows[i]
		t.Run(strings.ReplaceAll(r.Name, " ", "-"), func(t *testing.T) { w.run(t, r) })
	}
}

func (w *world) run(t *testing.T, r *row) {
	s := w.server(r.On)
	before := lastLine(t, s)
	status, says, err := w.try(s, r.side)
	if err != nil {
		t.Fatalf("the attempt: %v", err)
	}
	if status != r.Status || !strings.Contains(says, r.Says) {
		t.Errorf("the attempt ended with %s, want %s that says %q:\n%s", status, r.Status, r.Says, says)
	}
	w.checkLine(t, s, r, before)
	status, says, err = w.try(s, r.rightSide())
	if err != nil {
		t.Fatalf("the twin: %v", err)
	}
	if !r.Right.succeeded(status) {
		t.Errorf("the twin ended with %s, so the row may pass by accident:\n%s", status, says)
	}
}

func (r *twin) succeeded(status string) bool {
	if r.Status != "" {
		return status == r.Status
	}
	code, err := strconv.Atoi(status)
	return status == "ok" || status == "OK" || err == nil && code < 300
}

// lastLine returns the number of the newest line of the audit log.
func lastLine(t *testing.T, s *aServer) uint64 {
	t.Helper()
	return linesAfter(t, s, url.Values{"last": {"1"}}).Next
}

func linesAfter(t *testing.T, s *aServer, q url.Values) *api.AuditPage {
	t.Helper()
	page := &api.AuditPage{}
	if err := s.admin.JSON(t.Context(), api.Request{Path: "/_audit", Query: q}, page); err != nil {
		t.Fatal(err)
	}
	return page
}

// checkLine looks for the attempt's line, which must be on disk before the answer.
func (w *world) checkLine(t *testing.T, s *aServer, r *row, before uint64) {
	t.Helper()
	page := linesAfter(t, s, url.Values{"after": {strconv.FormatUint(before, 10)}})
	if r.Audit == nil {
		if len(page.Entries) > 0 {
			t.Errorf("the attempt left lines that the row does not tell of: %+v", page.Entries)
		}
		return
	}
	if len(page.Entries) == 0 {
		t.Error("the attempt left no line in the audit log")
	}
	for i := range page.Entries {
		e := &page.Entries[i]
		if err := r.Audit.matches(e, r.Status); err != nil {
			t.Errorf("line %+v: %v", e, err)
		}
	}
}

func (l *line) matches(e *access.Entry, status string) error {
	outcome := l.Outcome
	if outcome == "" {
		outcome = access.Denied
	}
	switch {
	case e.Event != l.Event || e.Outcome != outcome:
		return fmt.Errorf("want the event %s, %s", l.Event, outcome)
	case l.User != "" && e.User != l.User:
		return fmt.Errorf("want the user %q", l.User)
	case l.Missing != "" && !strings.Contains(e.Missing, l.Missing):
		return fmt.Errorf("want %q to be missing", l.Missing)
	case e.Status != 0 && strconv.Itoa(e.Status) != status:
		return fmt.Errorf("want the status %s", status)
	case e.From == "":
		return fmt.Errorf("want where it came from")
	}
	return nil
}
