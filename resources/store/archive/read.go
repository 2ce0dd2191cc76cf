package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"regexp"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Backup is a backup in memory.
type Backup struct {
	Header    Header
	Resources []*resources.Resource
	Files     []File

	paths map[string]bool
}

// Read reads and verifies a whole backup. Errors: ErrDamaged with the damage, ErrFormat.
func Read(r io.Reader) (*Backup, error) {
	packed := &counted{from: r}
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: not a backup of causewayctl: %w", ErrDamaged, err)
	}
	lines := bufio.NewScanner(&inflated{from: plain, packed: packed})
	lines.Buffer(make([]byte, 64<<10), maxLine)
	if !lines.Scan() {
		return nil, fmt.Errorf("%w: it is empty: %w", ErrDamaged, orTruncated(lines.Err()))
	}
	b := &Backup{paths: map[string]bool{}}
	if err := json.Unmarshal(lines.Bytes(), &b.Header); err != nil || b.Header.Format < 1 {
		return nil, fmt.Errorf("%w: it does not begin as a backup of causewayctl", ErrDamaged)
	}
	if b.Header.Format > formatVersion {
		return nil, store.NewerFormat(ErrFormat, "the backup", b.Header.Format, formatVersion, b.Header.Version)
	}
	if err := b.Header.check(); err != nil {
		return nil, fmt.Errorf("%w: line 1: %w", ErrDamaged, err)
	}
	take := formats()[b.Header.Format-1]
	sum := sha256.New()
	add(sum, lines.Bytes())
	for number := 2; lines.Scan(); number++ {
		end, err := take(b, lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrDamaged, number, err)
		}
		if end != nil {
			if err := b.check(end, sum, lines); err != nil {
				return nil, err
			}
			return b, nil
		}
		add(sum, lines.Bytes())
	}
	return nil, fmt.Errorf("%w: its end is missing: %w", ErrDamaged, orTruncated(lines.Err()))
}

func add(sum hash.Hash, text []byte) {
	_, _ = sum.Write(text)
	_, _ = sum.Write([]byte("\n"))
}

func orTruncated(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// formats returns the parser for the lines of each format, the first for format 1. Older backups can be read and are
// not changed.
func formats() []func(b *Backup, text []byte) (*trailer, error) {
	return []func(*Backup, []byte) (*trailer, error){(*Backup).parseLine}
}

// parseLine parses a line into the backup, and returns the trailer if the line is the trailer.
func (b *Backup) parseLine(text []byte) (*trailer, error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the line goes on after its JSON value")
	}
	if l.count() > 1 {
		return nil, errors.New("want one of header, resource, file and trailer")
	}
	switch {
	case l.Resource != nil:
		r, err := l.Resource.resource()
		if err != nil {
			return nil, err
		}
		b.Resources = append(b.Resources, r)
	case l.File != nil:
		if err := l.File.check(b.Header.Server); err != nil {
			return nil, err
		}
		if b.paths[l.File.Path] {
			return nil, fmt.Errorf("file %q appears twice", l.File.Path)
		}
		b.paths[l.File.Path] = true
		b.Files = append(b.Files, *l.File)
	case l.Trailer == nil:
		return nil, errors.New("want a resource, a file or the trailer")
	}
	return l.Trailer, nil
}

// zoneName matches valid zone names: the name becomes a part of the store's prefix in etcd.
var zoneName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// maxRevision leaves room for the revisions after a restore.
const maxRevision = 1 << 62

// check refuses a header that no server writes.
func (h *Header) check() error {
	switch {
	case folders[h.Server] == nil:
		return fmt.Errorf("server %q: want global or zone", h.Server)
	case h.Zone != "" && (h.Server != "zone" || !zoneName.MatchString(h.Zone)):
		return fmt.Errorf("zone %q is not the name of a zone, in a backup of a %s", h.Zone, h.Server)
	case h.Revision > maxRevision:
		return fmt.Errorf("revision %d: want at most %d", h.Revision, uint64(maxRevision))
	}
	return nil
}

func (b *Backup) check(end *trailer, sum hash.Hash, lines *bufio.Scanner) error {
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case got != end.SHA256:
		return fmt.Errorf("%w: its SHA-256 is %s, and %s was written", ErrDamaged, got, end.SHA256)
	case len(b.Resources) != end.Resources || len(b.Files) != end.Files:
		return fmt.Errorf("%w: it has %d resources and %d files, and %d and %d were written", ErrDamaged,
			len(b.Resources), len(b.Files), end.Resources, end.Files)
	case lines.Scan():
		return fmt.Errorf("%w: something comes after its end", ErrDamaged)
	case lines.Err() != nil:
		return fmt.Errorf("%w: %w", ErrDamaged, lines.Err())
	}
	return nil
}
