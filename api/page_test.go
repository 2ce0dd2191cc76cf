package api_test

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/server" //nolint:depguard // the listener that limits strangers
	"github.com/causeway-mesh/causeway/web"    //nolint:depguard // the page that servers have
)

// Without a credential, a caller gets only the page, with which a person signs in.
func TestPageNeedsNoCredential(t *testing.T) {
	server, _ := guardedServer(t, t.TempDir(), access.Settings{})
	stranger := []string{"X-Forwarded-For", "192.0.2.1"} // through a proxy: not an admin
	for _, c := range []struct {
		name, method, path, body string
		status                   int
	}{
		{"the page", http.MethodGet, "/ui/", "", http.StatusOK},
		{"one of its views", http.MethodGet, "/ui/why?from=x", "", http.StatusOK},
		{"a file that it has not", http.MethodGet, "/ui/assets/none.js", "", http.StatusNotFound},
		{"a write to it", http.MethodPost, "/ui/", "{}", http.StatusMethodNotAllowed},
		{"the API", http.MethodGet, "/meshes", "", http.StatusUnauthorized},
		{"a name that begins alike", http.MethodGet, "/uix", "", http.StatusUnauthorized},
		{"the API by way of the page", http.MethodGet, "/ui/../meshes", "", http.StatusNotFound},
		{"the API by way of the page, encoded", http.MethodGet, "/ui/%2e%2e/meshes", "", http.StatusNotFound},
		{"the API behind an empty segment", http.MethodGet, "//ui/meshes", "", http.StatusUnauthorized},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, answer := ask(t, server, c.method, c.path, c.body, stranger...)
			if status != c.status {
				t.Errorf("%s %s: %d, want %d\n%s", c.method, c.path, status, c.status, answer)
			}
			if !strings.Contains(answer, "default-src 'none';") {
				t.Errorf("%s %s: no policy for browsers:\n%s", c.method, c.path, answer)
			}
			if strings.Contains(answer, `"mesh"`) {
				t.Errorf("%s %s tells of the mesh:\n%s", c.method, c.path, answer)
			}
		})
	}
}

// A stranger's connection gets what a browser requests, but cannot download the page endlessly.
func TestPageIsBoundedForStrangers(t *testing.T) {
	guarded, _ := guardedServer(t, t.TempDir(), access.Settings{})
	l, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.ServeHTTP(ctx, l, guarded.Config.Handler, nil) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	answers, got := bufio.NewReader(conn), 0
	for ; got < 100; got++ {
		if _, err := conn.Write([]byte("GET /ui/ HTTP/1.1\r\nHost: a\r\n\r\n")); err != nil {
			break
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			break
		}
		if resp.StatusCode != http.StatusOK || resp.Write(new(strings.Builder)) != nil {
			t.Fatalf("the page is answered with %s", resp.Status)
		}
		if resp.Close {
			got++
			break
		}
	}
	if got != 8 {
		t.Errorf("one connection got the page %d times, want 8, and the last to say so", got)
	}
}

// Requests for how to sign in while the identity provider is down log nothing: strangers make them.
func TestSignInThatIsAwayFillsNoLog(t *testing.T) {
	var log bytes.Buffer
	memory := store.NewMemory()
	guard, err := access.Open(t.Context(), access.Settings{OIDC: access.OIDCSettings{Issuer: "https://127.0.0.1:1", ClientID: "page"}},
		access.Parts{DataDir: t.TempDir(), Store: memory, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Audit().Close()
	s := api.New(api.Config{Store: memory, Guard: guard, Page: web.New(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ui/signin.json", nil))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "identity provider") {
		t.Errorf("%d %s, want a 503 of the identity provider", w.Code, w.Body)
	}
	if log.Len() > 0 {
		t.Errorf("a stranger wrote: %s", log.String())
	}
}

// A server without an identity provider says so without an error: browsers write those to their consoles.
func TestSignInWithoutAProviderIsNull(t *testing.T) {
	memory := store.NewMemory()
	guard, err := access.Open(t.Context(), access.Settings{},
		access.Parts{DataDir: t.TempDir(), Store: memory, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Audit().Close()
	s := api.New(api.Config{Store: memory, Guard: guard, Page: web.New(), Log: slog.New(slog.DiscardHandler)})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ui/signin.json", nil))
	if w.Code != http.StatusOK || strings.TrimSpace(w.Body.String()) != "null" {
		t.Errorf("%d %s, want null", w.Code, w.Body)
	}
}
