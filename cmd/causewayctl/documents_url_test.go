package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestReadURL checks that redirects are followed without a Referer, and that an HTML page is refused.
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
	raw, err := c.readURL(t.Context(), first.URL+"/moved?signature=secret")
	if err != nil || string(raw) != `referer: ""` {
		t.Errorf("got %q, %v", raw, err)
	}
	for path, want := range map[string]string{"/page": "a page for people", "/round": "more than 5 redirects"} {
		if _, err := c.readURL(t.Context(), first.URL+path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestInterruptEndsReading interrupts reads of a URL that does not answer, and of an input that stays silent.
func TestInterruptEndsReading(t *testing.T) {
	t.Parallel()
	reading, interrupt := context.WithCancel(t.Context())
	mute := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		interrupt()
		<-r.Context().Done()
	}))
	t.Cleanup(mute.Close)
	c := &cli{timeout: time.Hour}
	if _, err := c.readSource(reading, mute.URL); !errors.Is(err, context.Canceled) {
		t.Errorf("a URL: %v", err)
	}
	silent, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	reading, interrupt = context.WithCancel(t.Context())
	c.in = io.MultiReader(readerFunc(func([]byte) (int, error) { interrupt(); return 0, io.EOF }), silent)
	if _, err := c.readSource(reading, standardInput); !errors.Is(err, context.Canceled) {
		t.Errorf("an input: %v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
