package api

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestProxyQuestions: an expression that Envoy refuses does not make the proxy unreachable.
func TestProxyQuestions(t *testing.T) {
	t.Parallel()
	for query, field := range map[string]string{
		"match=[": "match", "match=" + url.QueryEscape("(?=x)"): "match", "match=" + strings.Repeat("x", maxMatch+1): "match",
		"format=xml": "format", "unused=1": "unused", "match=^a%2B&format=json&unused=true": "", "": "",
	} {
		_, err := ProxyQuestionOf(httptest.NewRequest(http.MethodGet, "/?"+query, nil), ProxyStats)
		var bad *Error
		switch {
		case field == "" && err != nil:
			t.Errorf("%.20s: %v", query, err)
		case field != "" && (!errors.As(err, &bad) || bad.Status != 400 || len(bad.InvalidParameters) != 1 ||
			bad.InvalidParameters[0].Field != field):
			t.Errorf("%.20s: %v, want a complaint about %s", query, err, field)
		}
	}
	if (ProxyQuestion{Subject: ProxyCertificates + 1}).Check() == nil {
		t.Error("a subject that does not exist is accepted")
	}
}
