package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/credential"
)

// EndedError reports that a session holds no longer, or never was.
type EndedError struct{ Reason string }

// Error implements error.
func (e *EndedError) Error() string { return e.Reason }

// Source gives the token of the session in a file, and renews it near its end. It is safe for concurrent use, also by
// several processes: each refresh token is used once.
type Source struct {
	// Path is the session's file; Server is the URL that its token goes to.
	Path, Server string

	mu   sync.Mutex
	held *Session // guarded by mu
}

// Token returns a token that holds. Errors include *EndedError.
func (s *Source) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == nil || !s.held.fresh(time.Now()) {
		if err := s.readLocked(); err != nil {
			return "", err
		}
	}
	if !s.held.fresh(time.Now()) {
		if err := s.renewLocked(ctx); err != nil && !time.Now().Before(s.held.Ends) {
			return "", err
		}
	}
	return s.held.IDToken, nil
}

func (s *Source) readLocked() error {
	held, err := Read(s.Path)
	switch {
	case errors.Is(err, ErrNone):
		return &EndedError{"nobody is signed in"}
	case errors.Is(err, ErrDamaged):
		return &EndedError{err.Error()}
	case err != nil:
		return err
	case held.Server != s.Server:
		return &EndedError{fmt.Sprintf("the session in %s is for %.200s, not for %s", s.Path, held.Server, s.Server)}
	}
	s.held = held
	return nil
}

// renewLocked replaces the session, unless another process has done so meanwhile.
func (s *Source) renewLocked(ctx context.Context) error {
	wait, cancel := context.WithCancel(ctx)
	defer cancel()
	if time.Now().Before(s.held.Ends) {
		cancel() // the token holds: it is not worth the wait for another's renewal
	}
	release, err := Hold(wait, s.Path)
	if err != nil {
		return err
	}
	defer release()
	if err := s.readLocked(); err != nil || s.held.fresh(time.Now()) {
		return err
	}
	ended := "the session ended " + s.held.Ends.Local().Format("2006-01-02 15:04:05 MST")
	if s.held.RefreshToken == "" {
		return &EndedError{ended}
	}
	kept, err := replace(s.Path) // before the provider takes the refresh token back
	if err != nil {
		return fmt.Errorf("%s, and is not renewed, as the next one cannot be kept: %w", ended, err)
	}
	defer kept.Discard()
	p, err := Discover(ctx, Settings{Issuer: s.held.Issuer, ClientID: s.held.ClientID, CAFile: s.held.ProviderCA})
	if err != nil {
		return fmt.Errorf("%s, and is not renewed: %w", ended, err)
	}
	next, err := p.renew(ctx, s.held)
	if refusal := (*RefusedError)(nil); errors.As(err, &refusal) || errors.Is(err, errAnother) {
		return &EndedError{fmt.Sprintf("%s: %s", ended, err)}
	}
	if err != nil {
		return fmt.Errorf("%s, and is not renewed: %w", ended, err)
	}
	if err := next.commit(kept); err != nil {
		return fmt.Errorf("the renewed session cannot be kept: %w", err)
	}
	s.held = next
	return nil
}

// Hold waits until nobody renews or replaces the session in a file, and keeps others from it until release is called. A
// renewal that was under way would put back what is removed meanwhile.
func Hold(ctx context.Context, path string) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return credential.Hold(ctx, filepath.Join(filepath.Dir(path), ".lock"), "renews or replaces a session")
}
