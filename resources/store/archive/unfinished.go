package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/causeway-mesh/causeway/place"
)

// UnfinishedFile, in a data folder, names the backup that is being restored to it.
const UnfinishedFile = "restore.unfinished"

// ErrUnfinished reports that a restore to a data folder has begun but not ended.
var ErrUnfinished = errors.New("a restore to this data folder was interrupted")

// Begin records durably that a restore of the backup in file to the data folder has begun, before the restore changes
// anything. Until End, Unfinished returns an error. Errors are the operating system's.
func Begin(dataDir, file string) error {
	out, err := os.CreateTemp(dataDir, "."+UnfinishedFile+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = out.WriteString(file + "\n")
	if err = errors.Join(err, out.Close()); err == nil {
		err = place.Rename(out.Name(), filepath.Join(dataDir, UnfinishedFile))
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}

// End records that the restore to the data folder is complete. Errors are the operating system's.
func End(dataDir string) error { return os.Remove(filepath.Join(dataDir, UnfinishedFile)) }

// Unfinished returns an error that wraps ErrUnfinished if a restore to the data folder has begun but not ended: its
// contents belong to no single state, and no server may start on it.
func Unfinished(dataDir string) error {
	raw, err := os.ReadFile(filepath.Join(dataDir, UnfinishedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w: finish it with causewayctl restore %s --data-dir %s --overwrite, and the flags of the store that were given",
		dataDir, ErrUnfinished, strings.TrimSpace(string(raw)), dataDir)
}
