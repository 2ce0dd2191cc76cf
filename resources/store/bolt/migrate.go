package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"go.etcd.io/bbolt"
)

// migration brings a file of one format to the next. It runs in a transaction, so it happens whole or not at all.
type migration func(*bbolt.Tx) error

// migrations returns those that there are: the first makes format 2 of format 1, and so on to formatVersion. There has been one
// format so far.
func migrations() []migration { return nil }

// migrate brings an older file forward by the steps from its format on, and keeps a copy of it as it was beside it, named by its
// format. A file of the newest format, or of one that is not known, it leaves alone.
func (f *file) migrate(steps []migration) (err error) {
	defer recoverDamage(f.path, &err)()
	format := 0
	err = f.db.View(func(tx *bbolt.Tx) error {
		if b := tx.Bucket(storeBucket); b != nil {
			format, _ = strconv.Atoi(string(b.Get(formatKey))) // reading the file judges it
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

// sign notes which program has the file, for the day when an older one is given it.
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

// keepCopy writes a copy that is whole when it appears. One of an attempt before stays: it is of the same file.
func keepCopy(tx *bbolt.Tx, path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	unfinished := path + ".unfinished"
	if err := tx.CopyFile(unfinished, fileMode); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
