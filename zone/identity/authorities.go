package identity

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// Config configures the authorities of a zone.
type Config struct {
	// Keeper stores their keys, sealed. Required.
	Keeper *secrets.Keeper
	// Store has the MeshIdentities; nil if there are none.
	Store store.Reader
	// Dir is where earlier versions stored the authorities unencrypted, in one directory for each mesh. They are
	// imported and the directory is removed. Empty if there is no such directory.
	Dir string
	// Zone is the zone's name.
	Zone string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Authorities holds the certificate authorities of a zone for each mesh, in the current version of the keeper. Servers
// with the same store share them. Safe for concurrent use.
type Authorities struct {
	cfg Config
	// forget is secrets.Forgetting.
	forget func() time.Time

	mu       sync.Mutex
	byDomain map[string]*held // guarded by mu
	leaps    leaps            // guarded by mu
}

// NewAuthorities returns the authorities in cfg.Keeper. They are read, or made, on the first request for a mesh.
func NewAuthorities(cfg Config) *Authorities {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Authorities{cfg: cfg, forget: secrets.Forgetting(cfg.Now), byDomain: map[string]*held{}, leaps: leaps{}}
}

// For returns the signing authority of a mesh domain. A mesh's own mesh domain makes its first authority if it has
// none. Errors wrap ErrAuthority.
func (a *Authorities) For(meshDomain string) (*Authority, error) {
	h, err := a.hold(context.Background(), meshDomain)
	if err != nil {
		return nil, err
	}
	if h.signing == nil {
		return nil, fmt.Errorf("%w: %s: none signs: not all peers know it yet, or no MeshIdentity requests it",
			ErrAuthority, meshDomain)
	}
	return h.signing, nil
}

// All returns all authorities of a mesh domain that peers must trust, oldest first. The caller must not change the
// slice.
func (a *Authorities) All(meshDomain string) ([]*Authority, error) {
	h, err := a.hold(context.Background(), meshDomain)
	if err != nil {
		return nil, err
	}
	return h.all, nil
}

// Ready reports whether a mesh domain has an authority that signs.
func (a *Authorities) Ready(meshDomain string) bool {
	_, err := a.For(meshDomain)
	return err == nil
}

func (a *Authorities) hold(ctx context.Context, meshDomain string) (*held, error) {
	domain, err := domainOf(meshDomain, a.cfg.Zone)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	version := a.cfg.Keeper.Version(secretName(meshDomain))
	if known := a.byDomain[meshDomain]; known != nil && known.version == version {
		return known, nil
	}
	_, h, err := a.read(ctx, meshDomain, domain)
	if errors.Is(err, secrets.ErrNotFound) && meshDomain == MeshOfDomain(meshDomain) {
		if err = a.create(ctx, meshDomain, domain); err == nil {
			_, h, err = a.read(ctx, meshDomain, domain)
		}
	}
	if errors.Is(err, secrets.ErrNotFound) {
		delete(a.byDomain, meshDomain)
		return &held{}, nil
	}
	if err == nil && a.byDomain[meshDomain] == nil {
		err = a.takenOver(meshDomain, h)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: mesh %s: %w", ErrAuthority, meshDomain, err)
	}
	a.byDomain[meshDomain] = h
	return h, nil
}

// Assigned returns the identity of a Dataplane of this zone, from the MeshIdentities that are ready. Errors wrap
// ErrIdentity.
func (a *Authorities) Assigned(dp *resources.Resource) (Assigned, error) {
	return a.Assignments(dp.Mesh).Of(dp)
}

// Assignments returns the current assignments of a mesh.
func (a *Authorities) Assignments(mesh string) *Assignments {
	if a.cfg.Store == nil {
		return &Assignments{mesh: mesh, zone: a.cfg.Zone}
	}
	return AssignmentsIn(a.cfg.Store.Snapshot(), mesh, a.cfg.Zone, a.Ready)
}

// Issue makes a key and an SVID for a Dataplane of this zone.
func (a *Authorities) Issue(dp *resources.Resource) (*SVID, error) { return a.Renew(dp, nil) }

// Renew is Issue for a Dataplane that already has an SVID; before is nil if it has none. If the clock was set since
// then, the new SVID is also valid for peers whose clock was not, for as long as the previous one is.
func (a *Authorities) Renew(dp *resources.Resource, before *SVID) (*SVID, error) {
	authority, who, err := a.forDataplane(dp)
	if err != nil {
		return nil, err
	}
	now := a.cfg.Now().Round(0)
	svid, err := authority.issueWithKey(&who, before, now)
	if err == nil && svid.leapt {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.leaps.add(svid, now)
	}
	return svid, err
}

// Sign issues a certificate for the key of a PEM certificate signing request. The certificate has the Dataplane's
// SPIFFE ID, whatever the request names. Errors wrap ErrRequest if the request is at fault.
func (a *Authorities) Sign(dp *resources.Resource, csrPEM []byte) (*SVID, error) {
	authority, who, err := a.forDataplane(dp)
	if err != nil {
		return nil, err
	}
	return authority.sign(&who, csrPEM, a.cfg.Now().Round(0))
}

// Expect returns the identity of a Dataplane, and the authorities of this zone that may attest it: none if SPIRE does.
func (a *Authorities) Expect(dp *resources.Resource) (spiffeid.ID, []*x509.Certificate, error) {
	_, who, err := a.forDataplane(dp)
	if err != nil {
		return spiffeid.ID{}, nil, err
	}
	all, err := a.All(who.meshDomain)
	if err != nil {
		return spiffeid.ID{}, nil, err
	}
	var certificates []*x509.Certificate
	for _, one := range all {
		certificates = append(certificates, one.cert)
	}
	return who.ID, certificates, nil
}

// Current returns the current identity of a Dataplane of this zone, and the id of the authority that signs it, empty if
// SPIRE does. Its errors are those of Issue.
func (a *Authorities) Current(dp *resources.Resource) (who Assigned, authority string, err error) {
	signing, who, err := a.forDataplane(dp)
	if err == nil {
		authority = signing.id
	}
	if errors.Is(err, ErrSpire) {
		err = nil
	}
	return who, authority, err
}

// forDataplane returns the authority and the identity for a Dataplane. Errors wrap ErrSpire if the zone does not sign.
func (a *Authorities) forDataplane(dp *resources.Resource) (*Authority, Assigned, error) {
	who, err := a.Assigned(dp)
	if err != nil {
		return nil, who, err
	}
	if who.Spire {
		return nil, who, fmt.Errorf("%w: %s, by %s", ErrSpire, dp.Key, resources.KRIOf(who.By))
	}
	authority, err := a.For(who.meshDomain)
	return authority, who, err
}
