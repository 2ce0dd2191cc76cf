package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var things = Kind{Group: "example.org", Version: "v1", Plural: "things", Name: "Thing", Namespaced: true}

// connected returns a client of a server over TLS, whose token is in a file with a relative path.
func connected(t *testing.T, h http.HandlerFunc) (c *Client, tokenFile string) {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	tokenFile = filepath.Join(dir, "token")
	must(t, os.WriteFile(tokenFile, []byte("a-token\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "ca"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	c, err := Connect(Config{Kubeconfig: kubeconfigIn(t, dir, srv.URL, `{"tokenFile": "token"}`), RequestsPerSecond: 1000})
	must(t, err)
	t.Cleanup(c.http.CloseIdleConnections)
	return c, tokenFile
}

func kubeconfigIn(t *testing.T, dir, server, user string) string {
	t.Helper()
	path := filepath.Join(dir, "kubeconfig")
	must(t, os.WriteFile(path, fmt.Appendf(nil, `{"current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
"clusters": [{"name": "it", "cluster": {"server": %q, "certificate-authority": "ca"}}], "users": [{"name": "it", "user": %s}]}`, server, user), 0o600))
	return path
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRedirectsAreNotFollowed redirects within the server and away from it.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for _, to := range []string{other.URL, "/moved"} {
		for _, code := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
			c, _ := connected(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/moved" {
					elsewhere.Add(1)
				}
				http.Redirect(w, r, to, code)
			})
			if _, err := c.Create(t.Context(), things, "ns", []byte(`{}`)); codeOf(err) != code {
				t.Errorf("%d to %s: %v", code, to, err)
			}
		}
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// TestAuthorityReplaced replaces the authority of the API server, as a cluster does that renews it.
func TestAuthorityReplaced(t *testing.T) {
	first := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"metadata": {"name": "n"}}`) }))
	defer first.Close()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca")
	must(t, os.WriteFile(ca, otherAuthority(t), 0o600))
	c, err := Connect(Config{Kubeconfig: kubeconfigIn(t, dir, first.URL, `{"token": "a-token"}`)})
	must(t, err)
	defer c.http.CloseIdleConnections()
	if _, err := c.Get(t.Context(), things, Name{Namespace: "ns", Name: "n"}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a stranger is trusted: %v", err)
	}
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: first.Certificate().Raw}), 0o600))
	if _, err := c.Get(t.Context(), things, Name{Namespace: "ns", Name: "n"}); err != nil {
		t.Errorf("the new authority is not trusted: %v", err)
	}
	must(t, os.WriteFile(ca, []byte("half"), 0o600))
	c.http.CloseIdleConnections()
	if _, err := c.Get(t.Context(), things, Name{Namespace: "ns", Name: "n"}); err == nil || !strings.Contains(err.Error(), "has no certificate") {
		t.Errorf("without an authority: %v", err)
	}
}

// otherAuthority is a certificate that signed nothing here.
func otherAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestEmptyTokenAsksNothing empties the file of the token, as a writer does that does not replace it at once.
func TestEmptyTokenAsksNothing(t *testing.T) {
	var asked atomic.Int32
	c, tokenFile := connected(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Authorization") != "Bearer a-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"metadata": {"name": "x"}}`)
	})
	_, err := c.Get(t.Context(), things, Name{Name: "x"})
	must(t, err)
	must(t, os.WriteFile(tokenFile, []byte("\n"), 0o600))
	c.read = time.Time{}
	if _, err := c.Get(t.Context(), things, Name{Name: "x"}); err == nil || !strings.Contains(err.Error(), "is empty") || asked.Load() != 1 {
		t.Errorf("%d requests, then %v", asked.Load(), err)
	}
}

// TestKubeconfigsRefused names what is wrong with a file.
func TestKubeconfigsRefused(t *testing.T) {
	for name, c := range map[string]struct{ server, user, want string }{
		"plain text":    {"http://127.0.0.1:1", `{"token": "t"}`, "want https://HOST:PORT"},
		"no scheme":     {"127.0.0.1:1", `{"token": "t"}`, "want https://HOST:PORT"},
		"no credential": {"https://127.0.0.1:1", `{"username": "u", "password": "p"}`, "no credential that is supported"},
		"exec":          {"https://127.0.0.1:1", `{"exec": {"command": "x"}}`, "exec are not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "ca"), nil, 0o600))
			path := kubeconfigIn(t, dir, c.server, c.user)
			raw, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, []byte(strings.Replace(string(raw), `, "certificate-authority": "ca"`, "", 1)), 0o600))
			if _, err := Connect(Config{Kubeconfig: path}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// heard is a sink that keeps what it hears.
type heard struct {
	mu       sync.Mutex
	replaced int
	failed   []error
	objects  map[Name]string // of their resourceVersions
}

func (h *heard) Replace(all []*Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replaced++
	h.objects = map[Name]string{}
	for _, o := range all {
		h.objects[o.ID()] = o.Meta.ResourceVersion
	}
}

func (h *heard) Changed(o *Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects[o.ID()] = o.Meta.ResourceVersion
}

func (h *heard) Deleted(o *Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.objects, o.ID())
}

func (h *heard) Failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = append(h.failed, err)
}

func (h *heard) Resumed() {}

// until polls a condition of what was heard.
func (h *heard) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		h.mu.Lock()
		is := ok()
		h.mu.Unlock()
		if is {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// follow follows things until the test ends.
func follow(t *testing.T, h http.HandlerFunc) *heard {
	t.Helper()
	c, _ := connected(t, h)
	sink := &heard{objects: map[Name]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Follow(ctx, things, "", sink)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return sink
}

const oneThing = `{"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "x", "resourceVersion": "9"}}]}`

// TestRestoredFromABackup serves a revision that is lower than the one that is watched from.
func TestRestoredFromABackup(t *testing.T) {
	for _, answer := range []string{`{"code": 504, "reason": "Timeout", "message": "Too large resource version: 9, current: 5"}`,
		`{"code": 410, "reason": "Expired", "message": "too old resource version"}`} {
		var lists atomic.Int32
		sink := follow(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Query().Get("watch") == "" && lists.Add(1) == 1:
				fmt.Fprint(w, oneThing)
			case r.URL.Query().Get("watch") == "":
				fmt.Fprint(w, `{"metadata": {"resourceVersion": "5"}, "items": []}`)
			case r.URL.Query().Get("resourceVersion") == "9":
				fmt.Fprintf(w, `{"type": "ERROR", "object": %s}`, answer)
			default:
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		})
		sink.until(t, "the list after "+answer, func() bool { return sink.replaced == 2 && len(sink.objects) == 0 })
	}
}

// TestAlwaysExpired answers every second page with 410: the client says that it cannot follow, and asks ever less.
func TestAlwaysExpired(t *testing.T) {
	var asked atomic.Int32
	sink := follow(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Query().Get("continue") == "" {
			fmt.Fprint(w, `{"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [{"metadata": {"name": "x"}}]}`)
			return
		}
		w.WriteHeader(http.StatusGone)
		fmt.Fprint(w, `{"code": 410, "reason": "Expired", "message": "The provided continue parameter is too old"}`)
	})
	sink.until(t, "two failures", func() bool { return len(sink.failed) == 2 })
	if n := asked.Load(); n > 20 || sink.replaced != 0 {
		t.Errorf("%d requests, %d partial lists", n, sink.replaced)
	}
}

// TestEndlessEvent sends an event that does not end.
func TestEndlessEvent(t *testing.T) {
	sink := follow(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, oneThing)
			return
		}
		fmt.Fprint(w, `{"type": "ADDED", "object": {"metadata": {"name": "`)
		chunk := []byte(strings.Repeat("x", 1<<20))
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	sink.until(t, "a failure", func() bool {
		return len(sink.failed) > 0 && strings.Contains(sink.failed[0].Error(), "an event has more than")
	})
}

// FuzzEvents reads any text as a page of a list, and as events of a watch. What is read has a name, and a page that is not
// whole is an error.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(oneThing))
	f.Add([]byte(`{"items": null}`))
	f.Add([]byte(`{"type": "ADDED", "object": {"metadata": {"name": "x", "resourceVersion": "1"}}}{"type": "BOOKMARK", "object": {}}`))
	f.Add([]byte(`{"type": "ERROR", "object": {"code": 410}}`))
	f.Add([]byte(`{"type": "DELETED", "object": null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p := &page{}
		err := p.read(json.NewDecoder(strings.NewReader(string(raw))))
		for _, o := range p.items {
			if o.Meta.Name == "" {
				t.Error("an item without a name")
			}
		}
		if err == nil && !json.Valid(raw[:len(raw)-len(trailing(raw))]) {
			t.Errorf("part of a page is read: %s", raw)
		}
		sink := &heard{objects: map[Name]string{}}
		w := &following{kind: things, sink: sink, revision: "1"}
		for d := json.NewDecoder(strings.NewReader(string(raw))); ; {
			var e event
			if d.Decode(&e) != nil || w.take(&e) != nil {
				break
			}
		}
		if _, ok := sink.objects[Name{}]; ok {
			t.Error("an object without a name")
		}
	})
}

// trailing is what follows the first value of a text.
func trailing(raw []byte) []byte {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	var v json.RawMessage
	_ = d.Decode(&v)
	return raw[d.InputOffset():]
}
