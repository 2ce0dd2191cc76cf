// Command idp is an OpenID Connect provider for tests of signing in: an authorization code with PKCE, or a device code,
// for one public client. It asks for a name, and believes it. It prints one JSON line with its issuer and the file of its certificate.
package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"html"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// provider holds what was issued but not yet redeemed.
type provider struct {
	issuer, client string
	// approve is who enters each device code, at the second question for its tokens; empty for nobody.
	approve string
	life    time.Duration
	key     *rsa.PrivateKey

	mu    sync.Mutex
	codes map[string]grant // guarded by mu
}

// grant is what a code, a device code or a refresh token represents.
type grant struct {
	user, nonce, challenge, redirect string
	// device marks a device code, and asked that its tokens were asked for.
	device, asked bool
}

func main() {
	client := flag.String("client-id", "causeway", "the client `ID` of the page")
	life := flag.Duration("life", time.Hour, "how long ID tokens hold")
	dir := flag.String("dir", ".", "`folder` for the certificate")
	approve := flag.String("approve", "", "the `name` of who enters each device code; nobody when empty")
	flag.Parse()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		log.Fatal(err)
	}
	p := &provider{client: *client, life: *life, approve: *approve, key: key, codes: map[string]grant{}}
	s := httptest.NewTLSServer(p.routes())
	defer s.Close()
	p.issuer = s.URL
	file := filepath.Join(*dir, "idp.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		log.Fatal(err) //nolint:gocritic // the process ends
	}
	fmt.Printf("{\"issuer\": %q, \"ca\": %q}\n", p.issuer, file)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
}

func (p *provider) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{
			"issuer": p.issuer, "authorization_endpoint": p.issuer + "/auth", "token_endpoint": p.issuer + "/token",
			"jwks_uri": p.issuer + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"},
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
			"scopes_supported": []string{"openid", "profile", "groups", "offline_access"}, "code_challenge_methods_supported": []string{"S256"},
			"device_authorization_endpoint": p.issuer + "/device", "revocation_endpoint": p.issuer + "/revoke",
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		encode := base64.RawURLEncoding.EncodeToString
		answer(w, http.StatusOK, map[string]any{"keys": []map[string]string{{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes())}}})
	})
	mux.HandleFunc("GET /auth", p.ask)
	mux.HandleFunc("POST /auth", p.grant)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /device", p.device)
	mux.HandleFunc("POST /revoke", p.revoke)
	mux.HandleFunc("OPTIONS /token", func(w http.ResponseWriter, _ *http.Request) { openToPages(w) })
	return mux
}

// ask serves the form in which a person enters a name.
func (p *provider) ask(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != p.client || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" ||
		q.Get("code_challenge") == "" || q.Get("state") == "" {
		http.Error(w, "want a code with PKCE, for the client "+p.client, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html><form method="post" action="/auth?%s"><label>User <input name="user"></label><button>Continue</button></form>`,
		html.EscapeString(r.URL.RawQuery))
}

// grant redirects the browser with a code, or with a refusal for a person called nobody.
func (p *provider) grant(w http.ResponseWriter, r *http.Request) {
	q, user := r.URL.Query(), r.PostFormValue("user")
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || back.Host == "" {
		http.Error(w, "redirect_uri", http.StatusBadRequest)
		return
	}
	given := url.Values{"state": {q.Get("state")}}
	if user == "nobody" {
		given.Set("error", "access_denied")
		given.Set("error_description", "nobody is unknown here")
	} else {
		given.Set("code", p.keep(grant{user: user, nonce: q.Get("nonce"), challenge: q.Get("code_challenge"), redirect: back.String()}))
	}
	back.RawQuery = given.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

// device gives a device code. Source: RFC 8628, section 3.2.
func (p *provider) device(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("client_id") != p.client {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	user := rand.Text()[:8]
	answer(w, http.StatusOK, map[string]any{"device_code": p.keep(grant{device: true}), "user_code": user, "expires_in": 60, "interval": 1,
		"verification_uri": p.issuer + "/enter", "verification_uri_complete": p.issuer + "/enter?code=" + user})
}

// revoke forgets a refresh token.
func (p *provider) revoke(_ http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.codes, r.PostFormValue("token"))
}

// token redeems a code, a device code or a refresh token, once.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	openToPages(w)
	field := map[string]string{"refresh_token": "refresh_token", "urn:ietf:params:oauth:grant-type:device_code": "device_code"}[r.PostFormValue("grant_type")]
	if field == "" {
		field = "code"
	}
	g, refusal := p.redeem(r.PostFormValue(field))
	verifier := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	proven := g.challenge == "" || g.challenge == base64.RawURLEncoding.EncodeToString(verifier[:]) && g.redirect == r.PostFormValue("redirect_uri")
	if refusal == "" && (!proven || r.PostFormValue("client_id") != p.client) {
		refusal = "invalid_grant"
	}
	if refusal != "" {
		answer(w, http.StatusBadRequest, map[string]string{"error": refusal})
		return
	}
	claims := jwt.MapClaims{"iss": p.issuer, "aud": p.client, "sub": g.user,
		"groups": []string{"staff"}, "iat": time.Now().Unix(), "exp": time.Now().Add(p.life).Unix()}
	if g.nonce != "" {
		claims["nonce"] = g.nonce
	}
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"] = "1"
	signed, err := token.SignedString(p.key)
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]string{"error": err.Error()})
		return
	}
	answer(w, http.StatusOK, map[string]any{"id_token": signed, "access_token": "unused", "token_type": "Bearer",
		"refresh_token": p.keep(grant{user: g.user, nonce: g.nonce})})
}

// redeem takes what a code represents, or returns why there is nothing.
func (p *provider) redeem(code string) (g grant, refusal string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g, known := p.codes[code]
	switch {
	case !known:
		return g, "invalid_grant"
	case g.device && (!g.asked || p.approve == ""):
		g.asked = true
		p.codes[code] = g
		return g, "authorization_pending"
	case g.device:
		g.user = p.approve
	}
	delete(p.codes, code)
	return g, ""
}

// keep stores a grant, and returns the code that redeems it.
func (p *provider) keep(g grant) string {
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code] = g
	return code
}

// openToPages allows pages of all sites, as providers do for public clients.
func openToPages(w http.ResponseWriter) { w.Header().Set("Access-Control-Allow-Origin", "*") }

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a browser that is gone needs no answer
}
