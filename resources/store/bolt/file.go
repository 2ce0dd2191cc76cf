package bolt

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/place"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

const (
	// formatVersion is the format that this code writes, and the newest that it reads.
	formatVersion = 1

	// initialMmapSize reserves address space, not memory: if the file outgrows it, bbolt blocks all transactions to map
	// it again.
	initialMmapSize = 1 << 30

	fileMode = 0o600
	dirMode  = 0o700
)

var (
	resourcesBucket = []byte("resources")
	storeBucket     = []byte("store")
	formatKey       = []byte("format")
	programKey      = []byte("program") // the version of the program that last opened the file
	stateKey        = []byte("state")
)

// file is the open bbolt file. Only one goroutine may use it at a time.
type file struct {
	path string
	db   *bbolt.DB
	// commit ends a write transaction: (*bbolt.Tx).Commit, unless a test replaces it.
	commit func(*bbolt.Tx) error
	// here is the place where the file must stay.
	here *place.Place
	// lostMeta reports that one of the two meta pages was damaged when the file was opened (Scan.LostMeta).
	lostMeta bool
	// busy tracks since when a write has waited for the disk.
	busy place.Busy
}

// openFile opens the file, or creates one if there is none.
func openFile(path string, lockTimeout time.Duration) (*file, error) {
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := createFile(path, lockTimeout); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	if err := readAhead(path); err != nil {
		return nil, err
	}
	db, opened, err := openBolt(path, lockTimeout)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, db: db, commit: (*bbolt.Tx).Commit}
	if f.here, err = place.Of(path, opened); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := f.checkPages(opened); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return f, nil
}

// inPlace returns nil while the next start would open this file. It costs one system call. The path leads through the
// folder, so the folder needs no check of its own.
func (f *file) inPlace() error { return f.here.Check() }

// createFile creates a complete file under another name and then renames it. An empty or half-written file under path
// is therefore damaged, and never treated as a new one.
func createFile(path string, lockTimeout time.Duration) error {
	unfinished := path + ".new"
	db, _, err := openBolt(unfinished, lockTimeout)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	// The lock on the unfinished file is held until the rename, so only one process can create the file.
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucketIfNotExists(resourcesBucket); err != nil {
			return err
		}
		b, err := tx.CreateBucketIfNotExists(storeBucket)
		if err != nil {
			return err
		}
		if err := b.Put(formatKey, []byte(strconv.Itoa(formatVersion))); err != nil {
			return err
		}
		return putTotals(b, totals{})
	})
	if err != nil {
		return fmt.Errorf("%s: %w", unfinished, err)
	}
	return place.Rename(unfinished, path)
}

// read yields all resources and returns the revision. An error of yield ends it. After an error nothing that it yielded
// may be used, because it compares the totals at the end.
func (f *file) read(yield func(*resources.Resource) error) (revision uint64, err error) {
	path := f.path
	defer recoverDamage(path, &err)()
	tx, err := f.db.Begin(false)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = tx.Rollback() }()
	want, err := header(path, tx)
	if err != nil {
		return 0, err
	}
	got := totals{Revision: want.Revision}
	decoder := newDecoder(path, yield)
	defer decoder.stop()
	err = tx.Bucket(resourcesBucket).ForEach(func(key, value []byte) error {
		if len(value) >= store.ChecksumSize {
			got.add(value)
		}
		return decoder.add(key, value)
	})
	if err == nil {
		err = decoder.finish()
	}
	if err != nil {
		return 0, err
	}
	if got != want {
		return 0, damaged(path, "it has %d resources (sum %x), but %d were written (sum %x)", got.Count, got.Sum,
			want.Count, want.Sum)
	}
	// The next write goes to pages that the file marks as free: verify that they are.
	// Check runs in its own goroutine, outside recoverDamage: checkPages has found before that no page leads it astray.
	for problem := range tx.Check(bbolt.WithKVStringer(keyText{bbolt.HexKVStringer()})) {
		err = damaged(path, "%w", problem)
	}
	return want.Revision, err
}

// keyText names keys in the problems that tx.Check reports. A damaged key may be as long as its page.
type keyText struct{ bbolt.KVStringer }

// keyTextBytes is the maximum size of a key in such a problem.
const keyTextBytes = 64

// KeyToString implements bbolt.KVStringer.
func (t keyText) KeyToString(key []byte) string {
	return t.KVStringer.KeyToString(key[:min(len(key), keyTextBytes)])
}

// fitsFile refuses a file that is shorter than its used pages.
func fitsFile(path string, used int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() < used {
		return damaged(path, "truncated: it has %d bytes of %d", info.Size(), used)
	}
	return nil
}

// header checks the format version and the buckets, and returns the totals.
func header(path string, tx *bbolt.Tx) (totals, error) {
	b := tx.Bucket(storeBucket)
	if b == nil || tx.Bucket(resourcesBucket) == nil {
		return totals{}, damaged(path, "it lacks the buckets of a store")
	}
	format, err := strconv.Atoi(string(b.Get(formatKey)))
	if err != nil || format < 1 {
		return totals{}, damaged(path, "%q is not a format version", b.Get(formatKey))
	}
	if format > formatVersion {
		return totals{}, store.NewerFormat(ErrFormat, path, format, formatVersion, string(b.Get(programKey)))
	}
	t, err := getTotals(b)
	if err != nil {
		return totals{}, damaged(path, "%w", err)
	}
	return t, nil
}

// write makes the changes durable: each key gets its resource, or is deleted if that is nil. After an error the file
// may have the old or the new state (see the committer). The revision of the file never decreases.
func (f *file) write(revision uint64, changes map[resources.Key]*resources.Resource) error {
	f.busy.Begin()
	defer f.busy.End()
	tx, err := f.db.Begin(true)
	if err != nil {
		return err
	}
	// bbolt does not release its write lock on every failure of Commit. After a successful Commit this does nothing.
	defer func() { _ = tx.Rollback() }()
	b := tx.Bucket(storeBucket)
	// Read again in each transaction: after a failed commit the file may have the totals of either state.
	sums, err := getTotals(b)
	if err != nil {
		return err
	}
	sums.Revision = max(sums.Revision, revision)
	for key, r := range changes {
		if err := replace(tx.Bucket(resourcesBucket), &sums, key, r); err != nil {
			return err
		}
	}
	if err := putTotals(b, sums); err != nil {
		return err
	}
	return f.commit(tx)
}

func replace(b *bbolt.Bucket, sums *totals, k resources.Key, r *resources.Resource) error {
	key := store.EncodeKey(k)
	if old := b.Get(key); old != nil {
		sums.remove(old)
	}
	if r == nil {
		return b.Delete(key)
	}
	value, err := store.EncodeValue(key, r)
	if err != nil {
		return err
	}
	sums.add(value)
	return b.Put(key, value)
}

func getTotals(b *bbolt.Bucket) (totals, error) { return decodeTotals(b.Get(stateKey)) }

func decodeTotals(raw []byte) (totals, error) {
	var t totals
	if len(raw) < store.ChecksumSize || binary.BigEndian.Uint32(raw) != store.Checksum(stateKey,
		raw[store.ChecksumSize:]) {
		return t, fmt.Errorf("revision and totals: %w", store.ErrChecksum)
	}
	if err := json.Unmarshal(raw[store.ChecksumSize:], &t); err != nil {
		return t, fmt.Errorf("revision and totals: %w", err)
	}
	return t, nil
}

func putTotals(b *bbolt.Bucket, t totals) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	raw := binary.BigEndian.AppendUint32(nil, store.Checksum(stateKey, body))
	return b.Put(stateKey, append(raw, body...))
}

func (f *file) close() error { return f.db.Close() }
