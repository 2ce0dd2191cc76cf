package leader

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ledFile, in the data folder, names the Lease by which replicas have shared what is in the folder.
const ledFile = "replicas-lease"

// maxLed bounds what is read of it, in bytes.
const maxLed = 300

// Alone returns an error if a server without a Lease must not start on a data folder, because replicas have shared its
// content: another one may have led since, and have changed it.
func Alone(dataDir string) error {
	raw, err := os.ReadFile(filepath.Join(dataDir, ledFile)) //nolint:gosec // the server's own folder
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: keep --kubernetes-lease %q, also for one replica, which then starts with all that the replicas had (helm upgrade --set replicas=1, not helm rollback); for a server without a Lease, restore a backup of the leader into an empty folder",
		ErrShared, raw[:min(len(raw), maxLed)])
}

// mark makes the folder one that Alone refuses. It returns once that survives the loss of power, since another replica
// may lead before this one starts again.
func (t *Term) mark() error {
	f, err := os.OpenFile(filepath.Join(t.cfg.DataDir, ledFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(t.cfg.Lease)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	folder, err := os.Open(t.cfg.DataDir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
