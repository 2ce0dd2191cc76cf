// Package session signs a person in at an OpenID Connect provider from a command line: by a browser on this machine, or
// by a code that the person enters in a browser elsewhere. It keeps the tokens in a file of the person's own, and renews
// them near their end.
package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/credential"
)

// Session is what a sign-in gave. It is a secret.
type Session struct {
	// Server is the URL of the server that the session is for. No other server gets its token.
	Server string `json:"server"`
	// Issuer and ClientID name the identity provider and the audience, as the server said. ProviderCA is a PEM file of
	// the authorities of the provider's certificate; empty for the system's.
	Issuer     string `json:"issuer"`
	ClientID   string `json:"clientId"`
	ProviderCA string `json:"providerCa,omitempty"`
	// Subject is the person's name at the provider: claim sub.
	Subject string `json:"subject"`
	// IDToken is the bearer token. It holds from Issued until Ends.
	IDToken string    `json:"idToken"`
	Issued  time.Time `json:"issued"`
	Ends    time.Time `json:"ends"`
	// RefreshToken gets the next ID token; empty if the provider gave none.
	RefreshToken string `json:"refreshToken,omitempty"`
}

// ErrNone reports that nobody is signed in: there is no file.
var ErrNone = errors.New("nobody is signed in")

// ErrDamaged reports a file that has no session any more, such as one that was cut off.
var ErrDamaged = errors.New("the session is damaged")

// maxToken is the maximum length of a token in bytes. Servers take headers of this order.
const maxToken = 24 << 10

// Path returns the file of a context's session, beside the file of contexts.
func Path(contextsFile, name string) string {
	return filepath.Join(filepath.Dir(contextsFile), "sessions", filepath.Base(contextsFile), name+".json")
}

// Read returns the session in a file. It refuses a file that others may read. Errors include ErrNone and ErrDamaged.
func Read(path string) (*Session, error) {
	raw, err := credential.Own("the session", path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNone
	}
	if errors.Is(err, credential.ErrEmpty) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, err
	}
	s := &Session{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	if s.Server == "" || s.Issuer == "" || s.ClientID == "" || s.IDToken == "" {
		return nil, fmt.Errorf("%w: %s is incomplete", ErrDamaged, path)
	}
	return s, nil
}

// Save replaces the file, which the caller holds (see Hold). Only its owner may read it; so may the folder, which it
// creates.
func (s *Session) Save(path string) error {
	next, err := replace(path)
	if err != nil {
		return err
	}
	defer next.Discard()
	return s.commit(next)
}

// room is what a session takes at most, in bytes.
const room = 2*maxToken + 8<<10

// replace begins to replace the session in a file.
func replace(path string) (*credential.Replacement, error) { return credential.Replace(path, room) }

// commit puts the session into the file's place.
func (s *Session) commit(next *credential.Replacement) error {
	raw, err := json.MarshalIndent(s, "", "  ") //nolint:gosec // a file of secrets, for its owner
	if err != nil {
		return err
	}
	return next.Commit(append(raw, '\n'))
}

// Remove removes the session in a file, which the caller holds (see Hold), and all that a renewal which was killed has left
// of another. It does not fail if there is none.
func Remove(path string) error { return credential.Remove(path) }

// nearEnd is the longest time before its end in which a token is renewed. Short tokens are renewed in their last fifth.
const nearEnd = time.Minute

// fresh reports whether the token holds for a while yet.
func (s *Session) fresh(now time.Time) bool {
	return now.Before(s.Ends.Add(-max(0, min(nearEnd, s.Ends.Sub(s.Issued)/5))))
}
