package e2e

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"

	"github.com/spiffe/go-spiffe/v2/svid/x509svid"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// keysOf returns the keys of a purpose, and fails unless exactly one of them signs.
func keysOf(ctx context.Context, s *cluster.Server, purpose string) (ids []string, signing string, err error) {
	var list api.SigningKeyList
	if err := s.API.Get(ctx, "/_keys", &list); err != nil {
		return nil, "", err
	}
	for _, k := range list.Keys {
		if k.Purpose != purpose {
			continue
		}
		ids = append(ids, k.ID)
		if k.State == "signing" && signing != "" {
			return nil, "", fmt.Errorf("%s and %s sign", signing, k.ID)
		}
		if k.State == "signing" {
			signing = k.ID
		}
	}
	if signing == "" {
		err = fmt.Errorf("no key of %s signs: %+v", purpose, list.Keys)
	}
	return ids, signing, err
}

// tokenIs checks whether the global takes the user's token.
func (o *operated) tokenIs(ctx context.Context, status int) error {
	got, said, err := asked(ctx, o.global, http.MethodGet, "/who-am-i", o.token, nil)
	if err == nil && got != status {
		err = fmt.Errorf("the token is answered with %d %s, want %d", got, said, status)
	}
	return err
}

// rotates makes do rotate the keys of a purpose, and done check that another one than before signs.
func (o *operated) rotates(s *cluster.Server, purpose string) {
	_, before, err := keysOf(o.t.Context(), s, purpose)
	o.must(err)
	o.do = func(ctx context.Context) error {
		_, err := post(ctx, s, "/_keys/"+purpose+"/_rotate", nil, http.StatusConflict)
		return err
	}
	o.done = func(ctx context.Context) error {
		ids, now, err := keysOf(ctx, s, purpose)
		if err == nil && (now == before || !slices.Contains(ids, before)) {
			err = fmt.Errorf("%s signed, and %s does, of %q", before, now, ids)
		}
		return err
	}
}

func (o *operated) rotatesTokens() {
	o.rotates(o.global, "token-signing")
	o.sound = func(ctx context.Context) error { return o.tokenIs(ctx, http.StatusOK) }
}

func (o *operated) retires() {
	_, old, err := keysOf(o.t.Context(), o.global, "token-signing")
	o.must(err)
	_, err = post(o.t.Context(), o.global, "/_keys/token-signing/_rotate", nil)
	o.must(err)
	o.do = func(ctx context.Context) error {
		_, err := post(ctx, o.global, "/_keys/token-signing/"+old+"/_retire", nil, http.StatusNotFound)
		return err
	}
	o.done = func(ctx context.Context) error { return o.tokenIs(ctx, http.StatusUnauthorized) }
}

func (o *operated) revokes() {
	o.do = func(ctx context.Context) error {
		_, err := post(ctx, o.global, "/tokens/user/"+o.id+"/_revoke", nil)
		return err
	}
	o.done = func(ctx context.Context) error { return o.tokenIs(ctx, http.StatusUnauthorized) }
}

func (o *operated) rotatesZoneCA() {
	o.rotates(o.global, "zone-ca")
}

// renews kills the zone while it renews its certificate by another zone CA.
func (o *operated) renews() {
	o.rotates(o.global, "zone-ca")
	o.victim = o.zone
	_, before, err := keysOf(o.t.Context(), o.global, "zone-ca")
	o.must(err)
	rotate := o.do
	o.done = func(ctx context.Context) error { // the old one retires by itself after the last renewal
		ids, _, err := keysOf(ctx, o.global, "zone-ca")
		if err == nil && slices.Contains(ids, before) {
			err = errNotYet
		}
		return err
	}
	o.do = func(ctx context.Context) error {
		if ids, _, err := keysOf(ctx, o.global, "zone-ca"); err == nil && len(ids) == 1 && ids[0] == before {
			if err := rotate(ctx); err != nil {
				return err
			}
		}
		return cluster.Until(ctx, patience, "the zone to renew", o.done)
	}
}

func (o *operated) rotatesIdentity() {
	o.victim = o.zone
	_, identity := o.client(o.zone, "before")
	o.rotates(o.zone, "identity:default")
	rotate, done := o.do, o.done
	o.do = func(ctx context.Context) error {
		if done(ctx) == nil {
			return nil
		}
		if err := rotate(ctx); err != nil {
			return err
		}
		return cluster.Until(ctx, patience, "the next authority to sign", done)
	}
	o.sound = func(ctx context.Context) error {
		now, err := o.zone.SVID(ctx, "default", "default", "before")
		if err != nil {
			return err
		}
		for _, one := range []*cluster.Identity{identity, now} {
			leaf, err := x509.ParseCertificate(one.Certificate.Certificate[0])
			if err != nil {
				return err
			}
			if _, _, err := x509svid.Verify([]*x509.Certificate{leaf}, now.Bundles); err != nil {
				return err
			}
		}
		return inSession(ctx, o.zone)
	}
}
