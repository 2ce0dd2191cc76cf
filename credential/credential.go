// Package credential reads the files that a flag, a setting or a resource names as a credential: tokens, keys, join
// strings, and the certificates of trusted authorities. Nothing else opens these files, so one rule holds for all of
// them. A test over the sources enforces this.
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
	// MaxSecret is the maximum size of a secret in bytes, far above that of any token, key or join string.
	MaxSecret = 64 << 10
	// MaxPublic is the maximum size of a public file in bytes, enough for all authorities of a system.
	MaxPublic = 1 << 20
)

// Err reports that a named credential cannot be used. The caller must then fail, and never act under another identity
// instead.
var Err = errors.New("cannot be used")

// ErrEmpty reports a file without content. Err is beside it.
var ErrEmpty = errors.New("is empty")

// rule holds the limits of one kind of file.
type rule struct {
	max int
	// forbidden are the mode bits that the file must not have.
	forbidden fs.FileMode
	// granted are the forbidden bits that are allowed if root grants them, as systemd, Kubernetes and container engines
	// do.
	granted fs.FileMode
}

var (
	secretRule = rule{max: MaxSecret, forbidden: 0o007, granted: 0o004}
	publicRule = rule{max: MaxPublic, forbidden: 0o002}
	ownRule    = rule{max: MaxSecret, forbidden: 0o077, granted: 0o040}
	sealedRule = rule{max: MaxSecret, forbidden: 0o002}
)

// Secret reads a file with a secret. name is what names the file, such as a flag. Each error begins with it, wraps Err
// and says what to do. Secret refuses a file that cannot be read, is not a regular file, is empty, is longer than
// MaxSecret, or that everybody may read or write. Its group may read it, as with Kubernetes' fsGroup. If root owns the
// file and the server does not run as root, everybody may read it.
func Secret(name, path string) ([]byte, error) { return readPath(name, path, secretRule) }

// Token is like Secret and trims the surrounding white space.
func Token(name, path string) (string, error) {
	text, err := Secret(name, path)
	return string(bytes.TrimSpace(text)), err
}

// Own is like Secret, for a key that everything depends on: only its owner may read it, or its group if root grants it.
func Own(name, path string) ([]byte, error) { return readPath(name, path, ownRule) }

// Sealed is like Secret, for a file that the server has sealed. Others may read it, as in a copy of a data folder,
// because it is useless without the key.
func Sealed(name, path string) ([]byte, error) { return readPath(name, path, sealedRule) }

// Public is like Secret, for a file that decides which peers are trusted and is not secret: everybody may read it, but
// not write it. Its limit is MaxPublic.
func Public(name, path string) ([]byte, error) { return readPath(name, path, publicRule) }

// Pool reads the certificates of authorities in PEM.
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

// Pair reads a certificate and its key in PEM.
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

// SecretIn is like Secret, for a file in a folder. No link can lead out of the folder.
func SecretIn(name string, folder *os.Root, file string) ([]byte, error) {
	f, err := folder.OpenFile(file, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, Err, err)
	}
	defer func() { _ = f.Close() }()
	return read(name, file, f, secretRule)
}

// read checks the open file rather than the path, so that it reads the file that it checked.
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
		return nil, fmt.Errorf("%s %w: write the credential into it, or do not name it", path, ErrEmpty)
	}
	return text, nil
}

func (r rule) judge(path string, info fs.FileInfo) error {
	forbidden := r.forbidden
	if !modesTell {
		forbidden = 0
	}
	if grantedByRoot(info) {
		forbidden &^= r.granted
	}
	mode := info.Mode()
	switch {
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name the file", path)
	case mode&fs.ModeNamedPipe != 0:
		return fmt.Errorf("%s is not a regular file, but a pipe, as <(...) makes: "+
			"write the credential into a file with mode 0600, and name that", path)
	case !mode.IsRegular():
		return fmt.Errorf("%s is not a regular file, but %s: name a file", path, kindOf(mode))
	case mode.Perm()&forbidden == 0:
		return nil
	case mode.Perm()&forbidden&0o022 != 0:
		return fmt.Errorf("%s may write %s (mode %04o): look at what it holds, then run chmod go-w", whoOf(mode, 0o002),
			path, mode.Perm())
	default:
		return fmt.Errorf("%s can be read by others (mode %04o): run chmod 600, and consider who has seen it", path,
			mode.Perm())
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
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	default:
		return "something else"
	}
}
