package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/place"
)

// migration converts a file from one format to the next. It runs in a transaction, so it happens completely or not at
// all.
type migration func(*bbolt.Tx) error

// migrations returns all migrations: the first converts format 1 to 2, and so on up to formatVersion. So far there has
// been only one format.
func migrations() []migration { return nil }

// migrate converts an older file step by step, starting at its format. It keeps a copy of the original beside it, named
// by its format. It leaves a file of the newest or an unknown format unchanged.
func (f *file) migrate(steps []migration) (err error) {
	defer recoverDamage(f.path, &err)()
	format := 0
	err = f.db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket(storeBucket); b != nil {
			format, _ = strconv.Atoi(string(b.Get(formatKey))) // reading the file checks it
		}
		if format < 1 || format > len(steps) {
			return nil
		}
		return keepCopy(tx, fmt.Sprintf("%s.format-%d", f.path, format))
	})
	if err != nil || format < 1 || format > len(steps) {
		return err
	}
	err = f.db.Update(func(tx *bbolt.Tx) error {
		for i, step := range steps[format-1:] {
			if err := step(tx); err != nil {
				return fmt.Errorf("%s: from format %d to %d: %w", f.path, format+i, format+i+1, err)
			}
		}
		return tx.Bucket(storeBucket).Put(formatKey, []byte(strconv.Itoa(len(steps)+1)))
	})
	return err
}

// sign records the program that has the file, so that an older program can name it.
func (f *file) sign(program string) error {
	signed := false
	err := f.db.View(func(tx *bbolt.Tx) error {
		signed = string(tx.Bucket(storeBucket).Get(programKey)) == program
		return nil
	})
	if err != nil || signed {
		return err
	}
	return f.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(storeBucket).Put(programKey, []byte(program)) })
}

// keepCopy writes a copy that is complete when it appears. A copy from an earlier attempt stays, because it is of the
// same file.
func keepCopy(tx *bbolt.Tx, path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unfinished := path + ".unfinished"
	if err := tx.CopyFile(unfinished, fileMode); err != nil {
		return err
	}
	return place.Rename(unfinished, path)
}
