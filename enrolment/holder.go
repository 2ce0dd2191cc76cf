package enrolment

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
	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// clockSlack is how far a clock may go back before it counts as reset.
const clockSlack = time.Minute

// The files of a Holder, in a folder of the data directory. They are replaced atomically, so a file that exists is
// complete.
const (
	membershipDir = "membership"
	// heldFile is the credential with everything that belongs to it, sealed. nextFile is the key of a request for a
	// credential, so that the zone can repeat the request if the response is lost.
	heldFile = "credential.sealed"
	// HeldPath is the path of heldFile, from the data directory.
	HeldPath = membershipDir + "/" + heldFile
	nextFile = "next.sealed"

	heldPurpose = "zone-membership"
	nextPurpose = "zone-membership-next"
)

// HeldCredential is what a zone has received from its global since it joined, with its private key. It is immutable.
type HeldCredential struct {
	Zone string `json:"zone"`
	// ID is generated at the first join and kept for the life of the zone.
	ID        string   `json:"id"`
	Addresses []string `json:"addresses"`
	// CA holds the authorities of the global's certificate, Certificate the zone's own, and Key its private key, all in
	// PEM.
	CA          string    `json:"ca"`
	Certificate string    `json:"certificate"`
	Key         string    `json:"key"`
	Received    time.Time `json:"received"`
	Expires     time.Time `json:"expires"`
	// Joined is the SHA-256 of the token that the zone exchanged for its first credential.
	Joined string `json:"joined"`

	pair  tls.Certificate
	roots *x509.CertPool
	// since is when its certificates became valid. The current time cannot be earlier.
	since time.Time
}

// identity returns the zone's name and ID as the certificate states them.
func (m *HeldCredential) identity() ZoneIdentity { return ZoneIdentity{Zone: m.Zone, ID: m.ID} }

// due returns how long to wait until the credential should be renewed, at half of its life. The result is not positive
// if it is due now. The global sets the lifetime, and this zone's clock measures the age, so a difference between the
// two clocks does not matter. A clock that is earlier than when the credential arrived has been set back, and cannot
// measure its age.
func (m *HeldCredential) due(now time.Time) time.Duration {
	age := now.Round(0).Sub(m.Received)
	if age < -clockSlack {
		return 0
	}
	return m.life()/2 - age
}

// life returns how long the credential is valid, from when it was signed.
func (m *HeldCredential) life() time.Duration {
	return m.Expires.Sub(m.pair.Leaf.NotBefore.Add(datedBack))
}

// serial returns the certificate's serial number in the global's format.
func (m *HeldCredential) serial() string { return m.pair.Leaf.SerialNumber.Text(16) }

// JoinedBy reports whether the zone exchanged this join string for its first credential.
func (m *HeldCredential) JoinedBy(offer *JoinString) bool { return m.Joined == tokenSum(offer) }

// load parses the certificates and the key, and checks that they belong together.
func (m *HeldCredential) load() error {
	var err error
	if m.pair, err = tls.X509KeyPair([]byte(m.Certificate), []byte(m.Key)); err != nil {
		return fmt.Errorf("the zone's certificate and key: %w", err)
	}
	if who, err := parseZoneURI(m.pair.Leaf.URIs); err != nil || who != m.identity() {
		return fmt.Errorf("the zone's certificate: want the one URI %s", m.identity().URI())
	}
	m.roots = x509.NewCertPool()
	if !m.roots.AppendCertsFromPEM([]byte(m.CA)) {
		return errors.New("the global's CA: want certificates in PEM")
	}
	m.since = m.pair.Leaf.NotBefore
	for block, rest := pem.Decode([]byte(m.CA)); block != nil; block, rest = pem.Decode(rest) {
		if ca, err := x509.ParseCertificate(block.Bytes); err == nil && ca.NotBefore.After(m.since) {
			m.since = ca.NotBefore // the global's clock may have been behind when it signed
		}
	}
	return nil
}

// Holder holds the credential of a data directory. Safe for concurrent use once InPlace is set.
type Holder struct {
	dir string
	box *secrets.Box
	now func() time.Time
	// InPlace, if set, returns an error if the data folder is not in its place. A write elsewhere would be lost.
	InPlace func() error
	// Keep, if set, is called after each write of a file. A write counts once it returns nil.
	Keep func() error
	// current is the newest credential, nil before the zone has joined.
	current atomic.Pointer[HeldCredential]
}

// OpenHolder reads the credential of an earlier run. An unreadable one is an error and is not replaced. now is the
// clock for judging certificates.
func OpenHolder(dataDir string, box *secrets.Box, now func() time.Time) (*Holder, error) {
	s := &Holder{dir: filepath.Join(dataDir, membershipDir), box: box, now: now}
	m := &HeldCredential{}
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

// Current returns the newest credential, nil before the zone has joined.
func (s *Holder) Current() *HeldCredential { return s.current.Load() }

func (s *Holder) read(name, purpose string, into any) (found bool, err error) {
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

func (s *Holder) write(name, purpose string, v any) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return err
	}
	sealed, err := s.box.Seal(plain, purpose)
	if err != nil {
		return err
	}
	if s.InPlace != nil {
		if err := s.InPlace(); err != nil {
			return fmt.Errorf("membership: %w", err)
		}
	}
	// Not MkdirAll: it must not recreate a data folder that was moved away.
	if err := os.Mkdir(s.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("membership: %w", err)
	}
	if err := server.WriteFile(filepath.Join(s.dir, name), sealed, 0o600); err != nil || s.Keep == nil {
		return err
	}
	return s.Keep()
}

// nextKey is a key without a certificate.
type nextKey struct {
	Zone string `json:"zone"`
	ID   string `json:"id"`
	Key  string `json:"key"`
}

// request returns a key and a signing request for it. It reuses the key of an earlier request without a response.
// Otherwise it generates a key and first writes it to disk. The zone's ID is that of its membership, or a new one. With
// the join string of the current credential, it repeats the same request, because the zone may have missed the
// response.
func (s *Holder) request(zone string, offer *JoinString) (nextKey, []byte, error) {
	var next nextKey
	found, err := s.read(nextFile, nextPurpose, &next)
	if err != nil {
		return next, nil, err
	}
	current := s.current.Load()
	if !found && offer != nil && current != nil && current.JoinedBy(offer) {
		next, found = nextKey{Zone: current.Zone, ID: current.ID, Key: current.Key}, true
	}
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
	who := ZoneIdentity{Zone: next.Zone, ID: next.ID}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{who.URI()}}, key)
	return next, csr, err
}

func newNextKey(zone string, current *HeldCredential) (nextKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nextKey{}, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nextKey{}, err
	}
	next := nextKey{Zone: zone, ID: uuid.NewString(),
		Key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}
	if current != nil {
		next.ID = current.ID
	}
	return next, nil
}

// origin holds what a membership keeps of the join string: the addresses and the SHA-256 of the token.
type origin struct {
	addresses []string
	token     string
}

// keep stores the response to a request and makes it the current credential.
func (s *Holder) keep(next nextKey, from origin, c *enrolmentpb.Credential, now time.Time) (*HeldCredential, error) {
	m := &HeldCredential{
		Zone: next.Zone, ID: next.ID, Addresses: from.addresses, CA: c.GetCa(), Certificate: c.GetCertificate(),
		Key: next.Key, Received: now.Round(0).UTC(), Expires: c.GetExpires().AsTime(), Joined: from.token,
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

// TLSConfig presents the current certificate to the global and verifies the global's certificate by the pinned
// authority. If the clock is earlier than the start of their validity, it has been set back, and that start counts as
// the current time.
func (s *Holder) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: s.current.Load().roots,
		Time: func() time.Time {
			now, since := s.now(), s.current.Load().since
			if now.Before(since) {
				return since
			}
			return now
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &s.current.Load().pair, nil },
	}
}
