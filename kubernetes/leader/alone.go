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

// mark makes the folder one that Alone refuses.
func (t *Term) mark() error {
	return os.WriteFile(filepath.Join(t.cfg.DataDir, ledFile), []byte(t.cfg.Lease), 0o600)
}
