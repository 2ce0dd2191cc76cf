package fsck

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/backend"
)

// maxFile bounds how much of a file beside the store is read, in bytes.
const maxFile = 64 << 20

// files checks everything beside the store. The folder may be a link, as systemd creates for a server with its own
// user: the trailing separator makes the walk follow it.
func (r *Report) files() error {
	return filepath.WalkDir(r.Dir+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.Dir, path)
		if err != nil {
			return err
		}
		r.permissions(path, name, info)
		if !info.Mode().IsRegular() {
			return nil
		}
		r.Files++
		return r.file(path, filepath.ToSlash(name), info)
	})
}

// permissions checks that only the owner has access to folders, the store and keys. The server refuses a key that
// others can read.
func (r *Report) permissions(path, name string, info fs.FileInfo) {
	open := info.Mode().Perm() & 0o077
	if name == "." {
		open &= 0o022 // whether others may list the folder is up to the operator
	}
	secret := info.IsDir() || name == backend.File || strings.HasSuffix(name, ".key") ||
		strings.HasSuffix(name, ".sealed") || strings.HasPrefix(name, "audit")
	if open == 0 || !secret || !info.IsDir() && !info.Mode().IsRegular() {
		return
	}
	severity := Warning
	if name == "secrets.key" {
		severity = Damage
	}
	r.add(Finding{
		Severity: severity, Where: name, What: fmt.Sprintf("others than its owner may use it (mode %04o)",
			info.Mode().Perm()),
		Do:     "--repair takes the permission away; consider who has seen it",
		repair: func() error { return os.Chmod(path, info.Mode().Perm()&0o700) },
	})
}

func (r *Report) file(path, name string, info fs.FileInfo) error {
	folder, base, _ := strings.Cut(name, "/")
	switch {
	case name == backend.File, base != "" && strings.HasPrefix(filepath.Base(base), "."):
		return nil
	case name == archive.UnfinishedFile:
		r.add(Finding{Severity: Damage, Where: name, What: archive.Unfinished(r.Dir).Error(),
			Do: "restore again: what is there belongs to no one state, and no server starts on it"})
		return nil
	case unfinished(name):
		r.add(Finding{Severity: Warning, Where: name, What: "it was left behind by a program that was interrupted",
			Do: "--repair removes it", repair: func() error { return removed(path) }})
		return nil
	}
	if info.Size() > maxFile {
		return nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	switch {
	case name == "cluster-id":
		if _, err := uuid.Parse(strings.TrimSpace(string(content))); err != nil {
			r.add(Finding{
				Severity: Damage, Where: name, What: "it is not an id: " + err.Error(),
				Do:     "--repair moves it aside; the server makes a new one",
				repair: func() error { return aside(path) },
			})
		}
	case folder == "known":
		r.lines(name, content, validJSON, "--repair removes it: it only saves work after a restart",
			func() error { return os.Remove(path) })
	case name == "holdings.sealed":
		r.lines(name, content, validHolding, "--repair removes it: proxies are given other identities when they come back", func() error { return os.Remove(path) })
	case folder == "audit":
		r.lines(name, content, validJSON, "keep a copy for whoever audits; the server keeps all other lines, shows these as damaged, and goes on behind them", nil)
	case strings.HasSuffix(name, ".crt"):
		r.certificates(name, content)
	case len(content) == 0 && (strings.HasSuffix(name, ".key") || strings.HasSuffix(name, ".sealed")):
		r.add(Finding{Severity: Damage, Where: name, What: "it is empty", Do: "restore it from a backup"})
	}
	return nil
}

// removed removes a file, which an earlier repair may have used up.
func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// unfinished reports whether a file is an incomplete copy of the store.
func unfinished(name string) bool {
	rest, ok := strings.CutPrefix(name, backend.File+".")
	return ok && slices.Contains([]string{".new", ".unfinished", ".fresh", ".repaired"}, "."+rest[strings.LastIndex(rest, ".")+1:])
}

func validJSON(_ int, line []byte) bool { return json.Valid(line) }

// validHolding reports whether a line of the checkpoint of a zone's proxies is valid: each line but the first is
// sealed, in base64. The key is unknown here, so only the zone's start shows whether it opens.
func validHolding(number int, line []byte) bool {
	if number == 1 {
		return bytes.HasPrefix(line, []byte("causeway-holdings "))
	}
	sealed, err := base64.StdEncoding.DecodeString(string(line))
	return err == nil && bytes.HasPrefix(sealed, []byte("cwseal"))
}

// lines checks a file line by line. The server itself removes a last line that a crash has truncated.
func (r *Report) lines(name string, content []byte, valid func(number int, line []byte) bool, do string,
	repair func() error) {
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, maxFile)
	bad, first, number := 0, 0, 0
	for lines.Scan() {
		number++
		if !valid(number, lines.Bytes()) {
			if bad++; bad == 1 {
				first = number
			}
		}
	}
	cut := len(content) > 0 && content[len(content)-1] != '\n'
	if bad == 0 && lines.Err() == nil || bad == 1 && first == number && cut {
		return
	}
	r.add(Finding{Severity: Warning, Where: name, What: fmt.Sprintf(
		"%d of %d lines cannot be read, the first is line %d", bad, number, first), Do: do, repair: repair})
}

func (r *Report) certificates(name string, content []byte) {
	found := 0
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		found++
		certificate, err := x509.ParseCertificate(block.Bytes)
		switch {
		case err != nil:
			r.add(Finding{Severity: Damage, Where: name, What: "a certificate cannot be read: " + err.Error(),
				Do: "restore it, and the key beside it, from a backup"})
		case time.Now().After(certificate.NotAfter):
			r.add(Finding{Severity: Warning, Where: name, What: "it has expired on " +
				certificate.NotAfter.Format(time.DateOnly),
				Do: "a server that starts renews its own certificate; one that you gave it, replace"})
		}
	}
	if found == 0 {
		r.add(Finding{Severity: Damage, Where: name, What: "it has no certificate in PEM form",
			Do: "restore it, and the key beside it, from a backup"})
	}
}
