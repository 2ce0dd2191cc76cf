package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestReadURL: what leads elsewhere is followed, without telling from where; a page for people is not taken for a file.
func TestReadURL(t *testing.T) {
	t.Parallel()
	last := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "referer: %q", r.Header.Get("Referer"))
	}))
	t.Cleanup(last.Close)
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, last.URL, http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprint(w, "<html>")
		}
	}))
	t.Cleanup(first.Close)
	c := &cli{timeout: 10 * time.Second}
	raw, err := c.readURL(first.URL + "/moved?signature=secret")
	if err != nil || string(raw) != `referer: ""` {
		t.Errorf("got %q, %v", raw, err)
	}
	for path, want := range map[string]string{"/page": "a page for people", "/round": "more than 5 redirects"} {
		if _, err := c.readURL(first.URL + path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
