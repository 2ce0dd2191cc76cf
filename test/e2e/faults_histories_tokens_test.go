package e2e

import (
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// heldToken is a user token, signed by key.
type heldToken struct{ text, id, key string }

// token issues, verifies or revokes one.
func (r *recorded) token(client, server int, random *rand.Rand) {
	s := r.servers[server]
	r.mu.Lock()
	var one heldToken
	if recent := r.issued[max(0, len(r.issued)-6):]; len(recent) > 0 {
		one = recent[random.IntN(len(recent))]
	}
	r.mu.Unlock()
	kind := random.IntN(20)
	switch {
	case one.id == "" || kind == 0:
		r.issue(s)
	case kind == 1:
		begun := r.now()
		status, _, known, sent := request(s, http.MethodPost, "/tokens/user/"+one.id+"/_revoke", "", nil)
		if sent && (!known || status/100 == 2) {
			r.record("tokens", client, server, begun, tokenIn{one.id, "revoke"}, true, known, false)
		}
	default:
		begun := r.now()
		status, _, known, sent := request(s, http.MethodGet, "/who-am-i", one.text, nil)
		if known && sent && (status == http.StatusOK || status == http.StatusUnauthorized) {
			r.record("tokens", client, server, begun, tokenIn{one.id, "verify"}, status == http.StatusOK, true, true)
		}
	}
}

func (r *recorded) issue(s *cluster.Server) {
	status, said, known, sent := request(s, http.MethodPost, "/tokens/user", "", map[string]string{"name": "alice", "validFor": "1h"})
	if !known || !sent || status/100 != 2 {
		return
	}
	one := heldToken{text: strings.TrimSpace(string(said))}
	one.id, one.key = partsOf(one.text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.issued = append(r.issued, one)
}

// partsOf reads the ids of a token and of its key, without verifying it.
func partsOf(token string) (id, key string) {
	claims := jwt.MapClaims{}
	parsed, _, err := jwt.NewParser().ParseUnverified(token, claims)
	if err != nil {
		return "", ""
	}
	id, _ = claims["jti"].(string)
	key, _ = parsed.Header["kid"].(string)
	return id, key
}
