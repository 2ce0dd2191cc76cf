package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// ErrNoMemoryLimits reports that this machine does not allow limits on a process's memory.
var ErrNoMemoryLimits = errors.New("this machine lets us make no memory cgroup")

// MemoryLimit is a cgroup that limits a process's memory, like a pod's or a unit's: above the limit, the kernel kills.
type MemoryLimit struct{ folder string }

// NewMemoryLimit creates a limit in bytes, in version 2 or 1 of cgroups. Close removes it.
func NewMemoryLimit(bytes int64) (*MemoryLimit, error) {
	name := fmt.Sprintf("causeway-%08x", rand.Uint32())
	var failed error
	for _, kind := range []struct{ root, file string }{{"/sys/fs/cgroup", "memory.max"},
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}} {
		m := &MemoryLimit{filepath.Join(kind.root, name)}
		err := os.Mkdir(m.folder, 0o755)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		// Not WriteFile, which would create the file if the folder is not a cgroup.
		if err = write(filepath.Join(m.folder, kind.file), strconv.FormatInt(bytes, 10)); err == nil {
			return m, nil
		}
		failed = errors.Join(failed, err, m.Close())
	}
	return nil, fmt.Errorf("%w: %w", ErrNoMemoryLimits, failed)
}

// Hold puts a process under the limit. It counts what the process allocates from now on.
func (m *MemoryLimit) Hold(p *Process) error {
	return write(filepath.Join(m.folder, "cgroup.procs"), strconv.Itoa(p.PID()))
}

// Close removes the limit. No process may be in it.
func (m *MemoryLimit) Close() error { return os.Remove(m.folder) }

func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
