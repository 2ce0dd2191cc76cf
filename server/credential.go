package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// MaxCredential is much more than any token, key or join string has, in bytes.
const MaxCredential = 64 << 10

// ErrCredential: a credential was named and is none. Who names one never acts as somebody else for want of it.
var ErrCredential = errors.New("no credential")

// ReadCredential reads a file that somebody named as a credential, without the white space around it. What cannot be read, is a
// folder, is empty, is longer than MaxCredential, or may be written by everybody, is an error that says what to do.
func ReadCredential(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredential, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrCredential, err)
	case info.IsDir():
		return nil, fmt.Errorf("%w: %s is a folder: name the file", ErrCredential, path)
	case info.Mode().IsRegular() && info.Mode().Perm()&0o002 != 0:
		return nil, fmt.Errorf("%w: everybody may write %s (mode %04o): look at what it holds, then run chmod 600", ErrCredential, path, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxCredential+1))
	switch trimmed := bytes.TrimSpace(text); {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrCredential, err)
	case len(text) > MaxCredential:
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrCredential, path, MaxCredential)
	case len(trimmed) == 0:
		return nil, fmt.Errorf("%w: %s is empty: write the credential into it, or do not name it", ErrCredential, path)
	default:
		return trimmed, nil
	}
}
