package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/tokens"
)

// TestRevokedWhileItWaits revokes the credential of a request that waits for the rest of its body, its turn, a change,
// or an audit entry. None is answered as if the credential were still valid.
func TestRevokedWhileItWaits(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(*testing.T, *httptest.Server, string, func()) (int, string){
		"document": func(t *testing.T, s *httptest.Server, token string, revoke func()) (int, string) {
			return askSlowly(t, s, token, "PUT", "/meshes/default/meshtimeouts/a", retry, revoke)
		},
		"batch": func(t *testing.T, s *httptest.Server, token string, revoke func()) (int, string) {
			return askSlowly(t, s, token, "POST", "/_batch", retry, revoke)
		},
		"token": func(t *testing.T, s *httptest.Server, token string, revoke func()) (int, string) {
			return askSlowly(t, s, token, "POST", "/tokens/user", `{"name": "heir", "validFor": "1h"}`, revoke)
		},
		"turn": func(t *testing.T, s *httptest.Server, token string, revoke func()) (int, string) {
			var finish []func()
			var ended sync.WaitGroup
			defer ended.Wait()
			for range max(1, runtime.GOMAXPROCS(0)/2) {
				body, rest := io.Pipe()
				first := asker(t, s, token, "POST", "/_batch?dryRun=server", body, nil)
				first.Header.Set("Expect", "100-continue")
				has := make(chan struct{}) // the server requests the body once the request has its turn
				first = first.WithContext(httptrace.WithClientTrace(first.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(has) }}))
				ended.Go(func() { do(t, s, first) })
				<-has
				finish = append(finish, func() { trickle(rest, retry) })
			}
			sent := make(chan struct{})
			go func() {
				<-sent
				revoke()
				for _, f := range finish {
					f()
				}
			}()
			return do(t, s, asker(t, s, token, "GET", "/meshtimeouts", nil, func() { close(sent) }))
		},
		"watch": func(t *testing.T, s *httptest.Server, token string, revoke func()) (int, string) {
			_, answer := do(t, s, asker(t, s, token, "GET", "/meshtimeouts?watch=0", nil, nil))
			var list struct {
				Revision uint64 `json:"revision"`
			}
			if err := json.Unmarshal([]byte(answer), &list); err != nil || list.Revision == 0 {
				t.Fatalf("no revision in %s: %v", answer, err)
			}
			sent := make(chan struct{})
			var revoked sync.WaitGroup
			defer revoked.Wait()
			revoked.Go(func() {
				<-sent
				time.Sleep(200 * time.Millisecond) // its last check is old by then
				revoke()
			})
			return do(t, s, asker(t, s, token, "GET", fmt.Sprintf("/meshtimeouts?watch=%d", list.Revision), nil, func() { close(sent) }))
		},
		"audit": func(t *testing.T, s *httptest.Server, token string, revoke func()) (int, string) {
			sent := make(chan struct{})
			var revoked sync.WaitGroup
			defer revoked.Wait()
			revoked.Go(func() { <-sent; revoke() })
			return do(t, s, asker(t, s, token, "GET", "/_audit?wait=5s&last=1&event=revoke", nil, func() { close(sent) }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, guard := guardedServer(t, t.TempDir(), access.Settings{})
			token, claims, err := guard.Issuer().Issue(t.Context(), tokens.Claims{Audience: tokens.AudienceUser,
				Subject: "mallory", Groups: []string{access.AdminGroup}}, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			revoked := make(chan struct{})
			status, answer := wait(t, s, token, func() {
				defer close(revoked)
				if status, answer := ask(t, s, "POST", "/tokens/user/"+claims.ID+"/_revoke", ""); status != http.StatusOK {
					t.Error(answer)
				}
			})
			select {
			case <-revoked: // its answer may follow that of the request that it ends
			case <-time.After(time.Minute):
				t.Fatal("nothing was revoked")
			}
			if status != http.StatusUnauthorized {
				t.Errorf("answered with %d:\n%s", status, answer)
			}
			if _, answer := ask(t, s, "GET", "/meshtimeouts", ""); strings.Contains(answer, "connectionTimeout") {
				t.Errorf("it was stored:\n%s", answer)
			}
		})
	}
}

// asker returns a request. sent, if any, is called when it has been sent.
func asker(t *testing.T, s *httptest.Server, token, method, path string, body io.Reader, sent func()) *http.Request {
	t.Helper()
	ctx := t.Context()
	if sent != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteRequest: func(httptrace.WroteRequestInfo) { sent() }})
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

func do(t *testing.T, s *httptest.Server, req *http.Request) (status int, answer string) {
	t.Helper()
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(raw)
}

// askSlowly sends the end of a body after revoke.
func askSlowly(t *testing.T, s *httptest.Server, token, method, path, body string, revoke func()) (int, string) {
	t.Helper()
	r, w := io.Pipe()
	go func() {
		_, _ = w.Write([]byte(" "))
		revoke()
		trickle(w, body)
	}()
	return do(t, s, asker(t, s, token, method, path, r, nil))
}

// trickle sends spaces for a while, then the body.
func trickle(w *io.PipeWriter, body string) {
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for range 50 {
		<-every.C
		_, _ = w.Write([]byte(" "))
	}
	_, _ = w.Write([]byte(body))
	_ = w.Close()
}
