package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/credential/contexts"
	"github.com/causeway-mesh/causeway/credential/session"
)

// signInAgain adds what to do to the error of a session that has ended.
func signInAgain(name string, err error) error {
	if ended := (*session.EndedError)(nil); errors.As(err, &ended) {
		return &failedError{err: &advised{fmt.Errorf("context %s: %w", name, err), "run causewayctl login " + name}, status: exitSignIn}
	}
	return err
}

// aboutSession adds what to do to the error of a server that does not accept the token of the context's session.
func (c *cli) aboutSession(err error) error {
	answer := (*api.Error)(nil)
	if c.credential.session == "" || !errors.As(err, &answer) || answer.Status != http.StatusUnauthorized {
		return err
	}
	return &failedError{err: &advised{fmt.Errorf("context %s: %w", c.credential.sessionOf, err), "run causewayctl login " + c.credential.sessionOf},
		status: exitSignIn}
}

// sessionText describes the session of a context in a table.
func sessionText(path string) string {
	s, err := session.Read(path)
	switch {
	case errors.Is(err, session.ErrNone):
		return "none: nobody is signed in"
	case err != nil:
		return err.Error()
	case s.RefreshToken == "" && !time.Now().Before(s.Ends):
		return "session of " + s.Subject + ", ended"
	}
	return "session of " + s.Subject
}

// dropSession removes the session that a context had, if any.
func (c *cli) dropSession(ctx context.Context, file *contexts.File, name string) error {
	path := session.Path(file.Path(), name)
	if _, err := os.Lstat(filepath.Dir(path)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	release, err := session.Hold(ctx, path)
	if err != nil {
		return fmt.Errorf("the session of context %s: %w", name, err)
	}
	defer release()
	return session.Remove(path)
}
