package enrolment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// zoneCAFile is the copy of the zone CA beside the global's own certificates, sealed as in the store. If the store is
// lost but not the folder, zones with certificates of this CA can be adopted.
const zoneCAFile = "zone-ca.sealed"

// zoneCACopy reads and writes that file.
type zoneCACopy struct {
	path string
	box  *secrets.Box
	log  *slog.Logger
}

func newZoneCACopy(c *AuthorityConfig, box *secrets.Box) *zoneCACopy {
	return &zoneCACopy{path: filepath.Join(c.Folder, zoneCAFile), box: box, log: c.Log}
}

// read returns the file's content, or nil if there is no file. Errors are those of Box.Open, with the file's name.
func (f *zoneCACopy) read() ([]byte, error) {
	sealed, err := credential.Sealed(zoneCAFile, f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plain, err := f.box.Open(sealed, AuthoritySecret)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: give the key that it was sealed with, or move the file away to let all zones join anew", f.path, err)
	}
	return plain, nil
}

// write replaces the file unless it is current. It logs a failure instead of returning it, because the store has the
// authorities.
func (f *zoneCACopy) write(plain []byte) {
	if now, err := f.read(); err == nil && string(now) == string(plain) {
		return
	}
	sealed, err := f.box.Seal(plain, AuthoritySecret)
	if err == nil {
		// Not MkdirAll: it must not recreate a data folder that was moved away.
		if err = os.Mkdir(filepath.Dir(f.path), 0o700); errors.Is(err, fs.ErrExist) { //nolint:gosec // the data folder
			err = nil
		}
	}
	if err == nil {
		err = server.WriteFile(f.path, sealed, 0o600)
	}
	if err != nil {
		f.log.Error("cannot write the copy of the zone CA beside the store: if the store is lost, zones must join again", "file", f.path, "error", err)
	}
}

// recover copies the authorities from the file into a store that has none, and reports whether there were any.
func (a *Authority) recover(ctx context.Context) (bool, error) {
	plain, err := a.copy.read()
	if err != nil || plain == nil {
		return false, err
	}
	if _, err := parseZoneCAs(plain); err != nil {
		return false, fmt.Errorf("%s: %w", a.copy.path, err)
	}
	_, err = a.keeper.Put(ctx, AuthoritySecret, plain, 0)
	if errors.Is(err, secrets.ErrChanged) {
		return true, nil // another global of this store was first
	}
	if err != nil {
		return false, err
	}
	a.copy.log.Warn("the store has no zone CA: restored the copy beside it; causewayctl zone adopt admits zones with its certificates again", "file", a.copy.path)
	return true, nil
}
