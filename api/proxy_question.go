package api

import (
	"encoding/json"
	"net/http"
	"regexp"

	"github.com/causeway-mesh/causeway/printing"
)

// ProxySubject is a part of an Envoy's state.
type ProxySubject int

// The subjects, each with a route of its own.
const (
	ProxyConfig ProxySubject = iota + 1
	ProxyStats
	ProxyClusters
	ProxyCertificates
)

// ProxyQuestion asks for one part of an Envoy's state.
type ProxyQuestion struct {
	Subject ProxySubject
	// JSON requests JSON, where Envoy also has another form.
	JSON bool
	// Match selects metrics by a regular expression. Unused also selects those that have never changed.
	Match  string
	Unused bool
}

// ProxyRoutes are the routes of all subjects.
var ProxyRoutes = map[ProxySubject]Route{ProxyConfig: RouteProxyConfig, ProxyStats: RouteProxyStats,
	ProxyClusters: RouteProxyClusters, ProxyCertificates: RouteProxyCertificates}

// maxMatch bounds the expression that names match, in bytes.
const maxMatch = 256

// ProxyQuestionOf reads the question of a request. Errors name the parameter.
func ProxyQuestionOf(r *http.Request, subject ProxySubject) (ProxyQuestion, error) {
	q := ProxyQuestion{Subject: subject, Match: r.URL.Query().Get("match")}
	switch format := r.URL.Query().Get("format"); format {
	case "", "text":
	case "json":
		q.JSON = true
	default:
		return q, BadField("format", "want text or json, got %q", format)
	}
	switch unused := r.URL.Query().Get("unused"); unused {
	case "", "false":
	case "true":
		q.Unused = true
	default:
		return q, BadField("unused", "want true or false, got %q", unused)
	}
	return q, q.Check()
}

// Check returns an error for an expression that Envoy would refuse, and for a subject that does not exist.
func (q ProxyQuestion) Check() error {
	if _, known := ProxyRoutes[q.Subject]; !known {
		return BadField("subject", "there is no such part of a proxy")
	}
	if len(q.Match) > maxMatch {
		return BadField("match", "want at most %d bytes, got %d", maxMatch, len(q.Match))
	}
	if _, err := regexp.Compile(q.Match); err != nil {
		return BadField("match", "want a regular expression of RE2: %v", err)
	}
	return nil
}

// IsJSON reports whether the answer is JSON. If not, it is text.
func (q ProxyQuestion) IsJSON() bool {
	return q.JSON || q.Subject == ProxyConfig || q.Subject == ProxyCertificates
}

// ProxyAnswer is an Envoy's response.
type ProxyAnswer struct {
	Body []byte
	// Warning says what may be wrong with it; empty for nothing.
	Warning string
}

// WriteProxyAnswer responds with the answer to a question. JSON must be valid.
func WriteProxyAnswer(w http.ResponseWriter, q ProxyQuestion, answer *ProxyAnswer) error {
	if answer.Warning != "" {
		Warn(w.Header(), answer.Warning)
	}
	if q.IsJSON() {
		return WriteLongJSON(w, json.RawMessage(answer.Body))
	}
	// A proxy must not control how a browser or a terminal interprets its response.
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, err := printing.NewWriter(w).Write(answer.Body)
	return err
}
