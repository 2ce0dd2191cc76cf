package secrets

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/causeway-mesh/causeway/credential"
)

const (
	// KeyFileName is the key file that a server creates in its data folder if it has no other key.
	KeyFileName = "secrets.key"
	// PassphraseEnv is the environment variable for the passphrase. There is no flag, because others can read command
	// lines.
	PassphraseEnv = "CAUSEWAY_SECRETS_PASSPHRASE" //nolint:gosec // the name of a variable, not a credential
	// minPassphrase is in bytes.
	minPassphrase = 12
)

// Config sets the key that seals secrets. KeyFile and Passphrase exclude each other.
type Config struct {
	// KeyFile holds 32 random bytes in base64 and is readable by its owner only.
	KeyFile string
	// Passphrase has at least 12 bytes. It comes from PassphraseEnv.
	Passphrase string
	// Dir is the folder of the key file that is created and reused if neither is given. It must exist.
	Dir string
	// Log receives a warning when a key file is created; slog.Default if nil.
	Log *slog.Logger
}

// KeptIn returns the files in Dir that are needed to open sealed secrets: the key that the server created, if it has no
// other key.
func KeptIn(keyFile, passphrase string) []string {
	if keyFile == "" && passphrase == "" {
		return []string{KeyFileName}
	}
	return nil
}

// OpenBox returns the box for a server's secrets. With neither key file nor passphrase it uses Dir/secrets.key and
// creates it if needed. Such a key protects copies of single files but not copies of the whole folder; a warning in the
// log says so. If a file in a folder of Dir was sealed and the key is missing, OpenBox fails instead of creating one.
// Errors wrap ErrKey and never contain the key.
func OpenBox(c Config) (*Box, error) {
	switch {
	case c.KeyFile != "" && c.Passphrase != "":
		return nil, fmt.Errorf("%w: a key file and the variable %s are both given: give one", ErrKey, PassphraseEnv)
	case c.Passphrase != "":
		if len(c.Passphrase) < minPassphrase {
			return nil, fmt.Errorf("%w: the passphrase in %s is shorter than %d bytes: choose a longer one", ErrKey,
				PassphraseEnv, minPassphrase)
		}
		return boxOfPassphrase(c.Passphrase)
	case c.KeyFile != "":
		key, err := readKey("--secrets-key-file", c.KeyFile)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; make one with: (umask 077; openssl rand -base64 32 > %s)", err, c.KeyFile)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKey, err)
		}
		return boxOfKey(key), nil
	}
	key, err := c.ownKey()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return boxOfKey(key), nil
}

// ownKey reads the key file of the data folder, or creates it.
func (c Config) ownKey() ([]byte, error) {
	path := filepath.Join(c.Dir, KeyFileName)
	key, err := readKey(KeyFileName, path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if sealed, err := findSealed(c.Dir); err != nil {
		return nil, err
	} else if sealed != "" {
		return nil, fmt.Errorf("%s is missing, and %s was sealed with it: restore the key, or name it with --secrets-key-file; another key cannot open it", path, sealed)
	}
	key = make([]byte, rootKeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	if err := writeKey(path, key); errors.Is(err, fs.ErrExist) {
		return readKey(KeyFileName, path) // another process has just created it
	} else if err != nil {
		return nil, err
	}
	log := c.Log
	if log == nil {
		log = slog.Default()
	}
	log.Warn("created a key for secrets in the data folder; store it elsewhere: move the file and name it with --secrets-key-file, or set a passphrase in "+
		PassphraseEnv+" from the first start", "file", path)
	return key, nil
}

// ofFileSystem is a folder that only root reads, in a data folder that is a file system of its own. No server writes there.
const ofFileSystem = "lost+found"

// findSealed returns a sealed file in one of the folders of dir, or "" if there is none.
func findSealed(dir string) (string, error) {
	folders, err := entries(dir)
	if err != nil {
		return "", err
	}
	for _, folder := range folders {
		if filepath.Base(folder) == ofFileSystem {
			continue
		}
		files, err := entries(folder)
		if err != nil {
			return "", err
		}
		for _, path := range files {
			if sealed, err := beginsSealed(path); err != nil || sealed {
				return path, err
			}
		}
	}
	return "", nil
}

// entries returns the paths of what a folder holds; nothing of what is no folder, or is not there. Unlike a pattern, it
// fails if the folder cannot be read.
func entries(dir string) (paths []string, err error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := os.ReadDir(dir)
	for _, e := range all {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths, err
}

func beginsSealed(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	begin := make([]byte, len(magic))
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return IsSealed(begin[:n]), nil
}

func readKey(name, path string) ([]byte, error) {
	raw, err := credential.Own(name, path)
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.AppendDecode(nil, bytes.TrimSpace(raw))
	if err != nil || len(key) != rootKeySize {
		return nil, fmt.Errorf("%s is not %d random bytes in base64", path, rootKeySize) // the decoder's error would show where it looked
	}
	return key, nil
}

// writeKey creates the whole file or nothing. It fails with fs.ErrExist if the file exists.
func writeKey(path string, key []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".secrets-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
