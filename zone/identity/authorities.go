package identity

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/secrets"
)

// Config says where the authorities of a zone are.
type Config struct {
	// Keeper keeps their keys, sealed. Required.
	Keeper *secrets.Keeper
	// Dir is where earlier versions kept them, one directory for each mesh, in the clear. What is there is taken over and
	// removed; empty for none.
	Dir string
	// Zone is the zone's name.
	Zone string
	// Now is the clock; time.Now when nil.
	Now func() time.Time
}

// Authorities are the certificate authorities of a zone for each mesh, as the keeper has them now: servers that share a
// store share them. Safe for concurrent use.
type Authorities struct {
	cfg Config

	mu     sync.Mutex
	byMesh map[string]*held // guarded by mu
}

// NewAuthorities returns the authorities in cfg.Keeper; they are read, or made, when a mesh is first asked for.
func NewAuthorities(cfg Config) *Authorities {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Authorities{cfg: cfg, byMesh: map[string]*held{}}
}

// meshName keeps what a peer calls a mesh from leaving the directory.
var meshName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)

// For returns the authority of a mesh that signs, and makes it when there is none. Errors wrap ErrAuthority.
func (a *Authorities) For(mesh string) (*Authority, error) {
	h, err := a.hold(context.Background(), mesh)
	if err != nil {
		return nil, err
	}
	return h.signing, nil
}

// MeshOf is the mesh whose authorities a secret of the store holds; ok is false for other secrets.
func MeshOf(secret resources.Key) (mesh string, ok bool) {
	return strings.CutPrefix(secret.Name, secretPrefix)
}

// All returns every authority of a mesh that is to be believed, oldest first. The caller must not change the slice.
func (a *Authorities) All(mesh string) ([]*Authority, error) {
	h, err := a.hold(context.Background(), mesh)
	if err != nil {
		return nil, err
	}
	return h.all, nil
}

func (a *Authorities) hold(ctx context.Context, mesh string) (*held, error) {
	if !meshName.MatchString(mesh) {
		return nil, fmt.Errorf("%w: %q is not the name of a mesh", ErrAuthority, mesh)
	}
	domain, err := TrustDomainOf(mesh, a.cfg.Zone)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.byMesh[mesh]; known != nil && known.version == a.cfg.Keeper.Version(secretName(mesh)) {
		return known, nil
	}
	_, h, err := a.read(ctx, mesh, domain)
	if errors.Is(err, secrets.ErrNotFound) {
		if err = a.create(ctx, mesh, domain); err == nil {
			_, h, err = a.read(ctx, mesh, domain)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: mesh %s: %w", ErrAuthority, mesh, err)
	}
	a.byMesh[mesh] = h
	return h, nil
}

// Issue makes a key and an SVID for a Dataplane of this zone.
func (a *Authorities) Issue(dp *resources.Resource) (*SVID, error) {
	authority, id, err := a.forDataplane(dp)
	if err != nil {
		return nil, err
	}
	return authority.issueWithKey(id, a.cfg.Now())
}

// Sign issues a certificate for the key of a PEM certificate signing request, with the Dataplane's SPIFFE ID whatever the
// request says. Errors wrap ErrRequest where the request is at fault.
func (a *Authorities) Sign(dp *resources.Resource, csrPEM []byte) (*SVID, error) {
	authority, id, err := a.forDataplane(dp)
	if err != nil {
		return nil, err
	}
	return authority.sign(id, csrPEM, a.cfg.Now())
}

// Expect returns who a Dataplane is, and the authorities of this zone that may say so.
func (a *Authorities) Expect(dp *resources.Resource) (spiffeid.ID, []*x509.Certificate, error) {
	_, id, err := a.forDataplane(dp)
	if err != nil {
		return spiffeid.ID{}, nil, err
	}
	all, err := a.All(dp.Mesh)
	if err != nil {
		return spiffeid.ID{}, nil, err
	}
	var certificates []*x509.Certificate
	for _, one := range all {
		certificates = append(certificates, one.cert)
	}
	return id, certificates, nil
}

func (a *Authorities) forDataplane(dp *resources.Resource) (*Authority, spiffeid.ID, error) {
	authority, err := a.For(dp.Mesh)
	if err != nil {
		return nil, spiffeid.ID{}, err
	}
	id, err := IDOf(dp, authority.domain)
	return authority, id, err
}
