package identity

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/secrets"
)

// State is the role of an authority in a rotation. Authorities in all states are published and trusted.
type State string

// The states, in the order in which an authority passes through them.
const (
	// Next signs nothing yet: all peers must learn of it first.
	Next State = "next"
	// Signing signs. A mesh domain has at most one such authority, and a mesh's own mesh domain always has one.
	Signing State = "signing"
	// Accepted no longer signs. Certificates that it signed may still be in use.
	Accepted State = "accepted"
)

// maxAuthorities bounds the authorities of a mesh domain: the next one, the signing one, and the accepted ones.
const maxAuthorities = 8

// keptAuthority is an authority as stored in its secret.
type keptAuthority struct {
	// Certificate and Key are DER: X.509 and PKCS #8.
	Certificate []byte `json:"certificate"`
	Key         []byte `json:"key"`
	// Unaware names the zones that were away when it began to sign.
	Unaware []string `json:"unaware,omitempty"`
	// Above holds the certificates up to the root, for a provided authority.
	Above [][]byte `json:"above,omitempty"`
	// Provided reports that an operator provided it. A provided root has no certificates above it.
	Provided bool  `json:"provided,omitempty"`
	State    State `json:"state"`
	// Since is when it entered its state.
	Since time.Time `json:"since"`
}

// keptAuthorities is the secret of a mesh domain, oldest first.
type keptAuthorities struct {
	Authorities []keptAuthority `json:"authorities"`
}

// held holds the authorities of a mesh domain at one version of their secret. It is immutable.
type held struct {
	version uint64
	all     []*Authority
	// signing is nil if no authority signs yet, or none signs any longer.
	signing *Authority
}

// idOf returns an authority's id: the beginning of its certificate's SHA-256.
func idOf(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:8])
}

func keep(a *Authority, state State, now time.Time) (keptAuthority, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	out := keptAuthority{Certificate: a.cert.Raw, Key: der, State: state, Since: now.UTC(), Provided: a.provided}
	for _, c := range append(slices.Clone(a.chain), a.anchors...) {
		if !c.Equal(a.cert) {
			out.Above = append(out.Above, c.Raw)
		}
	}
	return out, err
}

// read reads the authorities of a mesh domain from the keeper. Errors wrap secrets.ErrNotFound if it has none.
func (a *Authorities) read(ctx context.Context, meshDomain string, domain spiffeid.TrustDomain) (*keptAuthorities,
	*held, error) {
	plain, version, err := a.cfg.Keeper.Get(ctx, secretName(meshDomain))
	if err != nil {
		return nil, nil, err
	}
	var kept keptAuthorities
	if err := json.Unmarshal(plain, &kept); err != nil {
		return nil, nil, fmt.Errorf("its secret cannot be read") // the decoder's error would quote it
	}
	h := &held{version: version}
	for _, k := range kept.Authorities {
		one, err := k.authority(domain)
		if err != nil {
			return nil, nil, err
		}
		h.all = append(h.all, one)
		if k.State == Signing {
			h.signing = one
		}
	}
	switch {
	case h.signing == nil && meshDomain == MeshOfDomain(meshDomain):
		return nil, nil, fmt.Errorf("its secret names none that signs")
	case h.signing != nil && a.cfg.Now().After(h.signing.cert.NotAfter):
		return nil, nil, fmt.Errorf("the certificate of %s expired on %s", h.signing.id,
			h.signing.cert.NotAfter.Format(time.RFC3339))
	}
	return &kept, h, nil
}

func (k *keptAuthority) authority(domain spiffeid.TrustDomain) (*Authority, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(k.Key)
	if err != nil {
		return nil, fmt.Errorf("a key in its secret cannot be read")
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a key in its secret is a %T, which signs nothing", parsed)
	}
	var one *Authority
	if k.Provided {
		one, err = k.provided(domain, key)
	} else {
		one, err = authorityOf(domain, k.Certificate, key)
	}
	if err != nil {
		return nil, err
	}
	one.state, one.since, one.unaware = k.State, k.Since, k.Unaware
	return one, nil
}

func (k *keptAuthority) provided(domain spiffeid.TrustDomain, key crypto.Signer) (*Authority, error) {
	var chain []*x509.Certificate
	for _, der := range append([][]byte{k.Certificate}, k.Above...) {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		chain = append(chain, c)
	}
	return providedAuthority(domain, chain, key)
}

// create stores the first authority of a mesh: the one that an earlier version left in files, or a new one. If several
// servers do so at once, the first one wins.
func (a *Authorities) create(ctx context.Context, mesh string, domain spiffeid.TrustDomain) error {
	now := a.cfg.Now()
	dir := filepath.Join(a.cfg.Dir, mesh)
	var first *Authority
	_, err := os.Lstat(dir)
	inFiles := a.cfg.Dir != "" && err == nil
	switch {
	case inFiles:
		if first, err = loadAuthority(dir, domain, now); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	case a.cfg.Dir != "" && !errors.Is(err, fs.ErrNotExist):
		return err
	default:
		if first, err = newAuthority(domain, now); err != nil {
			return err
		}
	}
	one, err := keep(first, Signing, now)
	if err != nil {
		return err
	}
	err = a.write(ctx, mesh, &keptAuthorities{Authorities: []keptAuthority{one}}, 0)
	if err != nil && !errors.Is(err, secrets.ErrChanged) {
		return err
	}
	return nil // takenOver removes the files, now that the sealed copy is durable
}

// write replaces one version of a mesh domain's secret. A mesh domain without authorities has no secret.
func (a *Authorities) write(ctx context.Context, meshDomain string, kept *keptAuthorities, version uint64) error {
	if len(kept.Authorities) == 0 {
		return a.cfg.Keeper.Delete(ctx, secretName(meshDomain), version)
	}
	plain, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	_, err = a.cfg.Keeper.Put(ctx, secretName(meshDomain), plain, version)
	return err
}
