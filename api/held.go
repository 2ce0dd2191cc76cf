package api

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/access"
)

// WarningHeader carries a warning in a response, as `299 causeway "TEXT"`.
const WarningHeader = "Warning"

// Warn adds a warning to a response that is not sent yet.
func Warn(h http.Header, text string) { h.Add(WarningHeader, "299 causeway "+strconv.Quote(text)) }

// warningsIn reads the warnings that Warn added.
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

// errHeldBack reports that a credential, secret or backup was made but is withheld, because its audit line cannot be
// written.
var errHeldBack = errors.New("the audit log cannot be written, so the new credential is withheld")

// givesOut reports whether the response itself is the purpose of the request: a token, a certificate, a secret or a
// backup. If it is withheld, the request has no effect for the caller.
func givesOut(event string) bool {
	return event == access.EventIssue || event == access.EventReveal || event == access.EventBackUp
}

// heldAnswer is a response that is not sent yet. Responses to changes are small.
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
