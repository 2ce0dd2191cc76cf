package access

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// TestAProviderThatDoesNotAnswer: a provider that is slow to answer holds up the request for which it is asked, and,
// before its first answer, others for as long as they want to wait. It is asked for one of them.
func TestAProviderThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	answer := make(chan struct{})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		<-answer
		http.Error(w, "down", http.StatusServiceUnavailable)
	}))
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	var ahead atomic.Int64
	verifier, err := newOIDC(t.Context(), OIDCSettings{Issuer: s.URL, ClientID: "page", CAFile: ca},
		func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
	if err != nil {
		t.Fatal(err)
	}
	guard := NewGuard(Config{OIDC: verifier})
	ask := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := guard.SignIn(ctx)
			done <- err
		}()
		return done
	}
	wait := func(who string, done chan error) {
		t.Helper()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: a sign-in at a provider that did not answer", who)
			}
		case <-time.After(8 * time.Second): // less than the provider is given
			t.Errorf("%s waits for a request of somebody else's", who)
		}
	}
	for i, round := range []string{"the first time", "after a failure"} {
		ahead.Add(int64(2 * oidcRetry))
		one := ask(context.WithoutCancel(t.Context()))
		for deadline := time.Now().Add(time.Minute); asked.Load() != int64(i+1); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the provider is not asked")
			}
		}
		left, leave := context.WithCancel(t.Context())
		other := ask(left)
		if i == 0 {
			leave() // before the first answer it is worth waiting, for who is still there
		}
		wait(round+", another", other)
		leave()
		answer <- struct{}{}
		wait(round+", the one that asks", one)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the provider was asked %d times, want once in each round", n)
	}
}
