package access

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/causeway-mesh/causeway/credential/provider"
)

const (
	// keysEvery is the shortest interval between requests for a provider's keys, and keysBurst the number allowed at
	// once. Anyone can sign with an unknown key, and each such token causes a request.
	keysEvery = 10 * time.Second
	keysBurst = 2
)

// errKeysAsked reports that the provider was asked for its keys a moment ago, and is not asked again yet.
var errKeysAsked = errors.New("the provider's keys were requested a moment ago")

// seldom is an http.RoundTripper that asks at the rate of a limiter and not sooner.
type seldom struct {
	to      http.RoundTripper
	limiter *rate.Limiter
	now     func() time.Time
}

// seldomAsking returns client as it may ask for keys.
func seldomAsking(client *http.Client, now func() time.Time) *http.Client {
	out := *client
	to := client.Transport
	if to == nil {
		to = http.DefaultTransport
	}
	out.Transport = &seldom{to: to, limiter: rate.NewLimiter(rate.Every(keysEvery), keysBurst), now: now}
	return &out
}

// RoundTrip implements http.RoundTripper.
func (s *seldom) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.limiter.AllowN(s.now(), 1) {
		return nil, errKeysAsked
	}
	return s.to.RoundTrip(r)
}

// worthVerifying returns what is wrong with a token apart from its signature. A token that would be refused anyway
// causes neither computation nor requests. A provider signs other tokens for the same client with the same keys: access
// tokens (RFC 9068) have a type of their own, and logout tokens (OpenID Connect Back-Channel Logout) have events. Keycloak
// says the kind of a token in its payload.
func (v *oidcVerifier) worthVerifying(token string, now time.Time) error {
	var header struct {
		Algorithm string `json:"alg"`
		Type      string `json:"typ"`
	}
	var claims struct {
		Audience audience        `json:"aud"`
		Expires  json.Number     `json:"exp"`
		Events   json.RawMessage `json:"events"`
		Kind     string          `json:"typ"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || !decodePart(parts[0], &header) || !decodePart(parts[1], &claims) {
		return errors.New("it is not a JWT")
	}
	expires, err := claims.Expires.Float64()
	switch {
	case !slices.Contains(provider.Algorithms(), header.Algorithm):
		return fmt.Errorf("the algorithm %.20q is not accepted", header.Algorithm)
	case header.Type != "" && !strings.EqualFold(header.Type, "JWT"):
		return fmt.Errorf("it is of the type %.20q: want an ID token", header.Type)
	case claims.Kind != "" && !strings.EqualFold(claims.Kind, "ID") && !strings.EqualFold(claims.Kind, "JWT"):
		return fmt.Errorf("it is a token of the kind %.20q: want an ID token", claims.Kind)
	case claims.Events != nil:
		return errors.New("it tells of an event, such as a sign-out: want an ID token")
	case !slices.Contains(claims.Audience, v.settings.ClientID):
		return errors.New("it has another audience: claim aud")
	case err != nil || now.After(time.Unix(int64(expires), 0)):
		return errors.New("it has expired: claim exp")
	}
	return nil
}

func decodePart(part string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(raw, into) == nil
}

// audience is one name or a list of them.
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(a))
}
