package backend

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/causeway-mesh/causeway/place"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/archive"
)

// keep writes a backup of the contents of etcd, in an older format, to the server's data folder:
// etcd-format-N-TIME.backup. The file is complete when it appears. Errors are the operating system's.
func (c *Config) keep(format int, revision uint64, rs []*resources.Resource) (err error) {
	view := store.NewMemory()
	err = view.Load(func(put func(*resources.Resource) error) (uint64, error) {
		for _, r := range rs {
			if err := put(r); err != nil {
				return 0, err
			}
		}
		return revision, nil
	})
	if err != nil {
		return err
	}
	now := c.now().UTC()
	path := filepath.Join(filepath.Dir(c.Path),
		fmt.Sprintf("etcd-format-%d-%s.backup", format, now.Format("20060102-150405")))
	f, err := os.CreateTemp(filepath.Dir(path), ".unfinished-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	header := c.Owner
	header.Created = now
	out := bufio.NewWriter(f)
	err = archive.Write(out, header, view.Snapshot(), nil)
	if err == nil {
		err = out.Flush()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := place.Rename(f.Name(), path); err != nil {
		return err
	}
	c.logger().Info("wrote a backup of the store in its older format", "file", path, "format", format, "revision",
		revision, "resources", len(rs))
	return nil
}
