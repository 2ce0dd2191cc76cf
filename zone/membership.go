package zone

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// clockSlack is by how much a clock may go back without having been set.
const clockSlack = time.Minute

// Files of a membership, in a folder of the data directory. One that is there is whole: they are replaced at once.
const (
	membershipDir = "membership"
	// heldFile is the credential and all that belongs to it, sealed; nextFile a key that a credential was asked for with, so that the
	// answer to a request that was lost can be asked for again.
	heldFile = "credential.sealed"
	nextFile = "next.sealed"

	heldPurpose = "zone-membership"
	nextPurpose = "zone-membership-next"
)

// membership is what a zone has of its global since it joined. The value is never changed.
type membership struct {
	Zone string `json:"zone"`
	// ID is made at the first join and kept for the life of the zone.
	ID        string   `json:"id"`
	Addresses []string `json:"addresses"`
	// CA are the authorities of the global's certificate, Certificate the zone's own, Key its key: all in PEM.
	CA          string    `json:"ca"`
	Certificate string    `json:"certificate"`
	Key         string    `json:"key"`
	Received    time.Time `json:"received"`
	Expires     time.Time `json:"expires"`
	// Joined is the SHA-256 of the token that the first credential was traded for.
	Joined string `json:"joined"`

	pair  tls.Certificate
	roots *x509.CertPool
	// since is when its certificates began to be valid: it cannot be earlier than that.
	since time.Time
}

// member is how the certificate names the zone.
func (m *membership) member() kds.Member { return kds.Member{Zone: m.Zone, ID: m.ID} }

// due is how long the credential is good for yet before it should be renewed, at half of its life; not positive when that is now. The
// life is what the global has given it, and how old it is this zone's clock says: that they differ does not matter. A clock that says
// less than when the credential came was set, and says nothing about its age.
func (m *membership) due(now time.Time) time.Duration {
	age := now.Round(0).Sub(m.Received)
	if age < -clockSlack {
		return 0
	}
	return m.life()/2 - age
}

// life is how long the credential is valid, from when it was signed.
func (m *membership) life() time.Duration {
	return m.Expires.Sub(m.pair.Leaf.NotBefore.Add(kds.DatedBack))
}

// serial is the certificate's, as the global calls it.
func (m *membership) serial() string { return m.pair.Leaf.SerialNumber.Text(16) }

// load makes the parsed forms, and checks that they belong together.
func (m *membership) load() error {
	var err error
	if m.pair, err = tls.X509KeyPair([]byte(m.Certificate), []byte(m.Key)); err != nil {
		return fmt.Errorf("the zone's certificate and key: %w", err)
	}
	if who, err := kds.ParseMember(m.pair.Leaf.URIs); err != nil || who != m.member() {
		return errors.New("the zone's certificate names another zone")
	}
	m.roots = x509.NewCertPool()
	if !m.roots.AppendCertsFromPEM([]byte(m.CA)) {
		return errors.New("the global's CA cannot be read")
	}
	m.since = m.pair.Leaf.NotBefore
	for block, rest := pem.Decode([]byte(m.CA)); block != nil; block, rest = pem.Decode(rest) {
		if ca, err := x509.ParseCertificate(block.Bytes); err == nil && ca.NotBefore.After(m.since) {
			m.since = ca.NotBefore // the global's clock may have been behind when it signed
		}
	}
	return nil
}

// memberships keeps the membership of a data directory.
type memberships struct {
	dir string
	box *secrets.Box
	// held, when set, says whether the data folder is in its place: what is kept elsewhere is not kept.
	held func() error
	// current is the newest, nil before the zone has joined.
	current atomic.Pointer[membership]
}

// openMemberships reads what an earlier run has left. A membership that cannot be read is an error, and is not replaced.
func openMemberships(dataDir string, box *secrets.Box) (*memberships, error) {
	s := &memberships{dir: filepath.Join(dataDir, membershipDir), box: box}
	m := &membership{}
	found, err := s.read(heldFile, heldPurpose, m)
	if err != nil || !found {
		return s, err
	}
	if err := m.load(); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(s.dir, heldFile), err)
	}
	s.current.Store(m)
	return s, nil
}

func (s *memberships) read(name, purpose string, into any) (found bool, err error) {
	path := filepath.Join(s.dir, name)
	sealed, err := credential.Sealed(name, path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	plain, err := s.box.Open(sealed, purpose)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if err := json.Unmarshal(plain, into); err != nil {
		return false, fmt.Errorf("%s: %w", path, secrets.ErrDamaged)
	}
	return true, nil
}

func (s *memberships) write(name, purpose string, v any) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return err
	}
	sealed, err := s.box.Seal(plain, purpose)
	if err != nil {
		return err
	}
	if s.held != nil {
		if err := s.held(); err != nil {
			return fmt.Errorf("membership: %w", err)
		}
	}
	// Not MkdirAll: a data folder that was moved away is not made anew.
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("membership: %w", err)
	}
	return server.WriteFile(filepath.Join(s.dir, name), sealed, 0o600)
}

// nextKey is a key that no certificate has come for yet.
type nextKey struct {
	Zone string `json:"zone"`
	ID   string `json:"id"`
	Key  string `json:"key"`
}

// request returns the key to ask with and a signing request for it: the one of a request before that had no answer, or a new one,
// which is on disk first. The zone's id is that of its membership, or a new one.
func (s *memberships) request(zone string) (nextKey, []byte, error) {
	var next nextKey
	found, err := s.read(nextFile, nextPurpose, &next)
	if err != nil {
		return next, nil, err
	}
	current := s.current.Load()
	if !found || next.Zone != zone || current != nil && next.ID != current.ID {
		if next, err = newNextKey(zone, current); err != nil {
			return next, nil, err
		}
		if err := s.write(nextFile, nextPurpose, next); err != nil {
			return next, nil, err
		}
	}
	block, _ := pem.Decode([]byte(next.Key))
	if block == nil {
		return next, nil, fmt.Errorf("%s: %w", nextFile, secrets.ErrDamaged)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return next, nil, fmt.Errorf("%s: %w", nextFile, secrets.ErrDamaged)
	}
	who := kds.Member{Zone: next.Zone, ID: next.ID}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{who.URI()}}, key)
	return next, csr, err
}

func newNextKey(zone string, current *membership) (nextKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nextKey{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nextKey{}, err
	}
	next := nextKey{Zone: zone, ID: uuid.NewString(), Key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}
	if current != nil {
		next.ID = current.ID
	}
	return next, nil
}

// origin is what a membership keeps of the join string: the addresses, and the SHA-256 of the token.
type origin struct {
	addresses []string
	token     string
}

// keep makes the answer to a request durable; from then on it is the current one.
func (s *memberships) keep(next nextKey, from origin, c *kds.Credential, now time.Time) (*membership, error) {
	m := &membership{
		Zone: next.Zone, ID: next.ID, Addresses: from.addresses, CA: c.CA, Certificate: c.Certificate, Key: next.Key,
		Received: now.Round(0).UTC(), Expires: c.Expires.UTC(), Joined: from.token,
	}
	if err := m.load(); err != nil {
		return nil, fmt.Errorf("the global's answer cannot be used: %w", err)
	}
	if err := s.write(heldFile, heldPurpose, m); err != nil {
		return nil, err
	}
	s.current.Store(m)
	if err := os.Remove(filepath.Join(s.dir, nextFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return m, nil
}

// tlsConfig shows the current certificate to the global and verifies the global's by the authority that was pinned. A clock that says that it
// is earlier than when those were made was set back.
func (s *memberships) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: s.current.Load().roots,
		Time: func() time.Time {
			now, since := time.Now(), s.current.Load().since
			if now.Before(since) {
				return since
			}
			return now
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &s.current.Load().pair, nil },
	}
}
