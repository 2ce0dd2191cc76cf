package api

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/access"
)

// WarningHeader carries what a caller should know beside an answer, as `299 causeway "TEXT"`.
const WarningHeader = "Warning"

// warn adds a warning to an answer.
func warn(h http.Header, text string) { h.Add(WarningHeader, "299 causeway "+strconv.Quote(text)) }

// warningsIn reads what warn has added.
func warningsIn(h http.Header) []string {
	var out []string
	for _, value := range h.Values(WarningHeader) {
		quoted, ours := strings.CutPrefix(value, "299 causeway ")
		if text, err := strconv.Unquote(quoted); ours && err == nil {
			out = append(out, text)
		}
	}
	return out
}

// errHeldBack is the answer where something was made to be given out, and the line about it cannot be written.
var errHeldBack = errors.New("the audit log cannot be written, so what was made is not given out")

// givesOut reports whether the answer to a request is what it was for: a token, a certificate, a secret or a backup. Held back, it is as if
// it had not been made.
func givesOut(event string) bool {
	return event == access.EventIssue || event == access.EventReveal || event == access.EventBackUp
}

// heldAnswer is an answer that is not sent yet. Answers to changes are small.
type heldAnswer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *heldAnswer) Header() http.Header         { return a.header }
func (a *heldAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (a *heldAnswer) WriteHeader(code int) {
	if a.code == 0 {
		a.code = code
	}
}

func (a *heldAnswer) status() int {
	if a.code == 0 {
		return http.StatusOK
	}
	return a.code
}

func (a *heldAnswer) send(w http.ResponseWriter) error {
	w.WriteHeader(a.status())
	_, err := w.Write(a.body.Bytes()) //nolint:gosec // what the handler has written, as JSON
	if err != nil {
		return http.ErrAbortHandler
	}
	return nil
}
