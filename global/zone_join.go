package global

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/tokens"
)

// Default and maximum lifetimes of what is issued for zones.
const (
	defaultJoinLifetime  = time.Hour
	maxJoinLifetime      = 24 * time.Hour
	defaultTokenLifetime = 30 * 24 * time.Hour
	maxTokenLifetime     = 365 * 24 * time.Hour
)

// zoneScopes are the scopes that a zone token may have. Source: Kuma's wire format, "Token replies".
var zoneScopes = []string{scopeControlPlane, "ingress", "egress"}

// issuer issues join strings and tokens for zones.
type issuer struct {
	*admission
	sync *kds.Global
	// authorize is api.Server.Authorize.
	authorize func(*http.Request, access.Action) error
	// addresses are this global's for zones; caSHA256 is what they pin, empty without TLS.
	addresses []string
	caSHA256  string
	// everyAddress adds the addresses of the other replicas.
	everyAddress func(own []string) []string
}

// serveJoin answers POST /zones/{name}/_join. It registers the zone if needed.
func (i *issuer) serveJoin(w http.ResponseWriter, r *http.Request) error {
	zone, order := r.PathValue("name"), enrolment.JoinOrder{}
	if err := readBody(r, &order); err != nil {
		return err
	}
	ttl, err := lifetime("ttl", order.TTL, defaultJoinLifetime, maxJoinLifetime)
	if err != nil {
		return err
	}
	if i.caSHA256 == "" {
		return api.NewError(http.StatusConflict, "Conflict",
			"zones are served without TLS here, so there is nothing to pin: start the global without --kds-tls=false")
	}
	if err := kds.CheckZoneName(zone); err != nil {
		return api.BadField("name", "%s", err)
	}
	if order.Rejoin {
		// It revokes the credentials of the previous server.
		if err := i.authorize(r, access.On(resources.VerbRevoke, kds.ZoneKey(zone))); err != nil {
			return err
		}
	}
	offer, err := i.join(r.Context(), zone, order.Rejoin, ttl)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, offer)
}

func (i *issuer) join(ctx context.Context, zone string, rejoin bool, ttl time.Duration) (*enrolment.JoinOffer, error) {
	token, claims, err := i.tokens.Issue(ctx, tokens.Claims{Subject: zone, Audience: tokens.AudienceJoin, Zone: zone,
		Scopes: []string{"join"}}, ttl)
	if err != nil {
		return nil, err
	}
	err = i.registry.Update(ctx, zone, func(m *enrolment.Record) error {
		if m.Joined() && m.DeletedAt.IsZero() && !rejoin {
			return api.NewError(http.StatusConflict, "Conflict",
				"a server has joined as zone "+zone+" already; when it is lost, ask again with rejoin (causewayctl zone create --rejoin): the next server then takes its place")
		}
		m.DeletedAt, m.Draining, m.DrainingAt = time.Time{}, false, time.Time{}
		m.Joins = append(m.Joins, enrolment.IssuedJoin{ID: claims.ID, Issued: claims.IssuedAt.UTC(),
			Expires: claims.Expires.UTC(), Rejoin: rejoin})
		m.Tidy(i.registry.Forget())
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := i.sync.EnsureZone(ctx, zone); err != nil {
		return nil, err
	}
	addresses := i.everyAddress(i.addresses)
	text, err := (&enrolment.JoinString{Zone: zone, Addresses: addresses, CASHA256: i.caSHA256, Token: token}).Encode()
	return &enrolment.JoinOffer{Zone: zone, Join: text, Addresses: addresses, CASHA256: i.caSHA256,
		Expires: claims.Expires.UTC()}, err
}

// lifetime parses a duration in a request.
func lifetime(field, text string, otherwise, most time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > most {
		return 0, api.BadField(field, "want a duration from 1s to %s, such as %s", most, otherwise)
	}
	return d, nil
}

// serveToken answers POST /zones/{name}/_token.
func (i *issuer) serveToken(w http.ResponseWriter, r *http.Request) error {
	order := enrolment.TokenOrder{}
	if err := readBody(r, &order); err != nil {
		return err
	}
	ttl, err := lifetime("ttl", order.TTL, defaultTokenLifetime, maxTokenLifetime)
	if err != nil {
		return err
	}
	offer, err := i.token(r.Context(), r.PathValue("name"), order.Scopes, ttl)
	if err != nil {
		return err
	}
	return api.WriteJSON(w, http.StatusOK, offer)
}

// serveTokenOfPeers answers POST /tokens/zone for Kuma's clients, with the token alone, as text. Source: Kuma's HTTP
// API, "Token replies".
func (i *issuer) serveTokenOfPeers(w http.ResponseWriter, r *http.Request) error {
	var order struct {
		Zone     string   `json:"zone"`
		Scope    []string `json:"scope"`
		ValidFor string   `json:"validFor"`
	}
	if err := readBody(r, &order); err != nil {
		return err
	}
	if order.Scope == nil {
		return api.BadField("scope", "want a list of %v", zoneScopes)
	}
	ttl, err := lifetime("validFor", order.ValidFor, defaultTokenLifetime, maxTokenLifetime)
	if err != nil {
		return err
	}
	if err := i.authorize(r, access.About(resources.VerbIssue, resources.AccessZoneToken, "", "",
		order.Zone)); err != nil {
		return err
	}
	offer, err := i.token(r.Context(), order.Zone, order.Scope, ttl)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain")
	_, err = w.Write([]byte(offer.Token))
	return err
}

func (i *issuer) token(ctx context.Context, zone string, scopes []string, ttl time.Duration) (*enrolment.TokenOffer, error) {
	if err := kds.CheckZoneName(zone); err != nil {
		return nil, api.BadField("zone", "%s", err)
	}
	if len(scopes) == 0 {
		scopes = []string{scopeControlPlane}
	}
	for n, s := range scopes {
		if !slices.Contains(zoneScopes, s) {
			return nil, api.BadField(fmt.Sprintf("scopes[%d]", n), "%q is none of %v", s, zoneScopes)
		}
	}
	if !i.allowTokens {
		return nil, api.NewError(http.StatusConflict, "Conflict",
			"this global does not accept zone tokens: start it with --kds-zone-tokens, or use a join string")
	}
	return i.issueToken(ctx, zone, scopes, ttl)
}

func (i *issuer) issueToken(ctx context.Context, zone string, scopes []string, ttl time.Duration) (*enrolment.TokenOffer, error) {
	token, claims, err := i.tokens.Issue(ctx, tokens.Claims{Subject: zone, Audience: tokens.AudienceZone, Zone: zone,
		Scopes: scopes}, ttl)
	if err != nil {
		return nil, err
	}
	err = i.registry.Update(ctx, zone, func(m *enrolment.Record) error {
		if len(m.Tokens) >= enrolment.MaxZoneTokens {
			return api.NewError(http.StatusConflict, "Conflict",
				fmt.Sprintf("zone %s has %d tokens that have not expired: revoke them first (causewayctl zone revoke %s)", zone, len(m.Tokens), zone))
		}
		m.DeletedAt, m.Draining, m.DrainingAt = time.Time{}, false, time.Time{}
		m.Tokens = append(m.Tokens, enrolment.IssuedToken{ID: claims.ID, Scopes: scopes, Issued: claims.IssuedAt.UTC(),
			Expires: claims.Expires.UTC()})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := i.sync.EnsureZone(ctx, zone); err != nil {
		return nil, err
	}
	return &enrolment.TokenOffer{Zone: zone, Token: token, ID: claims.ID, Scopes: scopes, Expires: claims.Expires.UTC()}, nil
}
