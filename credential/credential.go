// Package credential reads the files that a flag, a setting or a resource names as a credential: tokens, keys, join strings, and the
// certificates of those who are believed. Nothing else opens them, so that one rule holds for all: a test over the sources holds it.
package credential

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	// MaxSecret is much more than any token, key or join string has, in bytes.
	MaxSecret = 64 << 10
	// MaxPublic has room for all authorities of a system, in bytes.
	MaxPublic = 1 << 20
)

// Err: a credential was named and is none. Who names one never acts as somebody else for want of it.
var Err = errors.New("no credential")

// rule is what a kind of file is held to.
type rule struct {
	max int
	// forbidden are the bits of a mode that it must not have.
	forbidden fs.FileMode
	// granted are those of them that it may have where it is root who gives it, as by systemd, Kubernetes and engines of containers.
	granted fs.FileMode
}

var (
	secretRule = rule{max: MaxSecret, forbidden: 0o007, granted: 0o004}
	publicRule = rule{max: MaxPublic, forbidden: 0o002}
	ownRule    = rule{max: MaxSecret, forbidden: 0o077, granted: 0o040}
	sealedRule = rule{max: MaxSecret, forbidden: 0o002}
)

// Secret reads a file with a secret. name says who named it, such as a flag, and begins each error; errors wrap Err. What cannot be read, is
// no regular file, is empty, is longer than MaxSecret, or may be read or written by everybody, is an error that says what to do. Its group
// may read it, as with Kubernetes' fsGroup, and everybody what root gives a server that is not root.
func Secret(name, path string) ([]byte, error) { return readPath(name, path, secretRule) }

// Token is Secret without the white space around it.
func Token(name, path string) (string, error) {
	text, err := Secret(name, path)
	return string(bytes.TrimSpace(text)), err
}

// Own is Secret for a key that everything hangs on: only its owner may read it, and its group where it is root who lets it.
func Own(name, path string) ([]byte, error) { return readPath(name, path, ownRule) }

// Sealed reads a file that the server has sealed. It may be read by others, as in a copy of a data folder: it is of no use without the key.
// Otherwise as Secret.
func Sealed(name, path string) ([]byte, error) { return readPath(name, path, sealedRule) }

// Public reads a file that decides who is believed, and is no secret: everybody may read it, and not write it. Otherwise as Secret, up to
// MaxPublic.
func Public(name, path string) ([]byte, error) { return readPath(name, path, publicRule) }

// Pool reads the certificates of authorities, in PEM.
func Pool(name, path string) (*x509.CertPool, error) {
	text, err := Public(name, path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %w: %s holds no PEM certificate", name, Err, path)
	}
	return pool, nil
}

// Pair reads a certificate and its key, in PEM.
func Pair(certName, certPath, keyName, keyPath string) (tls.Certificate, error) {
	cert, err := Public(certName, certPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := Secret(keyName, keyPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s, %s: %w: %w", certName, keyName, Err, err)
	}
	return pair, nil
}

func readPath(name, path string, r rule) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, Err, err)
	}
	defer func() { _ = f.Close() }()
	return read(name, path, f, r)
}

// SecretIn is Secret for a file of a folder that no link leads out of.
func SecretIn(name string, folder *os.Root, file string) ([]byte, error) {
	f, err := folder.OpenFile(file, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, Err, err)
	}
	defer func() { _ = f.Close() }()
	return read(name, file, f, secretRule)
}

// read judges what was opened, so that it is what is read.
func read(name, path string, f *os.File, r rule) ([]byte, error) {
	text, err := r.read(path, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, Err, err)
	}
	return text, nil
}

func (r rule) read(path string, f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := r.judge(path, info); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(r.max)+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > r.max:
		return nil, fmt.Errorf("%s has more than %d bytes", path, r.max)
	case len(bytes.TrimSpace(text)) == 0:
		return nil, fmt.Errorf("%s is empty: write the credential into it, or do not name it", path)
	}
	return text, nil
}

func (r rule) judge(path string, info fs.FileInfo) error {
	forbidden := r.forbidden
	if grantedByRoot(info) {
		forbidden &^= r.granted
	}
	mode := info.Mode()
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name the file", path)
	case !mode.IsRegular():
		return fmt.Errorf("%s is no regular file, but %s: name a file", path, kindOf(mode))
	case mode.Perm()&forbidden == 0:
		return nil
	case mode.Perm()&forbidden&0o022 != 0:
		return fmt.Errorf("%s may write %s (mode %04o): look at what it holds, then run chmod go-w", whoOf(mode, 0o002), path, mode.Perm())
	default:
		return fmt.Errorf("%s can be read by others (mode %04o): run chmod 600, and consider who has seen it", path, mode.Perm())
	}
}

func whoOf(mode, everybody fs.FileMode) string {
	if mode.Perm()&everybody != 0 {
		return "everybody"
	}
	return "its group"
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "something else"
	}
}
