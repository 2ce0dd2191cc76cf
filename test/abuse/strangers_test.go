package abuse

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// TestBogusTokensAskNobody checks that tokens with made-up keys are refused, and that they cause only a few requests
// for the provider's keys. A token of the provider stays valid meanwhile.
func TestBogusTokensAskNobody(t *testing.T) {
	w := newWorld(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	before := w.provider.asked.Load()
	for i := range 100 {
		claims := w.provider.claims(nil)
		kid := fmt.Sprintf("k%d", i)
		switch i % 3 {
		case 1:
			kid = "p1" // one of the provider's
		case 2:
			claims["aud"] = "somebody else"
		}
		if status := w.whoAmI(t, signed(t, jwt.SigningMethodRS256, kid, claims, key)); status != http.StatusUnauthorized {
			t.Fatalf("token %d: %d, want 401", i, status)
		}
	}
	if asked := w.provider.asked.Load() - before; asked > 4 {
		t.Errorf("the provider was asked for its keys %d times", asked)
	}
	if status := w.whoAmI(t, w.provider.token(t, nil)); status != http.StatusOK {
		t.Errorf("a token of the provider: %d, want 200", status)
	}
}

func (w *world) whoAmI(t *testing.T, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.global.url+"/who-am-i", nil)
	if err != nil {
		t.Fatal(err)
	}
	status, _, err := send(w.global, credential{}, withToken(req, token))
	if err != nil {
		t.Fatal(err)
	}
	var code int
	if _, err := fmt.Sscan(status, &code); err != nil {
		t.Fatal(err)
	}
	return code
}

func withToken(r *http.Request, token string) *http.Request {
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// TestBodiesAreReadAfterTheirSender checks that a caller without write access is refused before any of the body
// arrives, and that an authorised caller is asked for the body.
func TestBodiesAreReadAfterTheirSender(t *testing.T) {
	w := newWorld(t)
	admin := strings.TrimSpace(string(read(t, w.global.dataDir+"/admin.token")))
	roleless := issue(t, w.global, "roleless", nil, time.Hour)
	for _, target := range []string{"PUT /meshes/default/meshtimeouts/x", "PUT /meshes/new", "POST /_batch"} {
		for token, want := range map[string]string{"none": "401", roleless: "403", admin: "100"} {
			if got := w.announce(t, target, token); got != want {
				t.Errorf("%s with a token that is worth %s: answered %q", target, want, got)
			}
		}
	}
}

// announce sends the headers of a request with a large body, and returns the status that the server sends without it.
func (w *world) announce(t *testing.T, target, token string) string {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(w.global.url, "https://"), w.global.tls())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/yaml\r\nContent-Length: 4000000\r\nExpect: 100-continue\r\n\r\n", target, token)
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, status, _ := strings.Cut(line, " ")
	return status[:3]
}
