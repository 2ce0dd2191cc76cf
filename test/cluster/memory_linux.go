package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// ErrNoMemoryLimits: this machine lets us limit no process's memory.
var ErrNoMemoryLimits = errors.New("this machine lets us make no memory cgroup")

// MemoryLimit is a cgroup that holds a process to so much memory, as a pod's or a unit's does: above it, the kernel kills.
type MemoryLimit struct{ folder string }

// NewMemoryLimit makes one of so many bytes, of the second or the first version of cgroups. Close takes it away.
func NewMemoryLimit(bytes int64) (*MemoryLimit, error) {
	name := fmt.Sprintf("causeway-%08x", rand.Uint32())
	var failed error
	for _, kind := range []struct{ root, file string }{{"/sys/fs/cgroup", "memory.max"}, {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}} {
		m := &MemoryLimit{filepath.Join(kind.root, name)}
		err := os.Mkdir(m.folder, 0o755)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		// Not WriteFile, which would make one where it is no cgroup.
		if err = write(filepath.Join(m.folder, kind.file), strconv.FormatInt(bytes, 10)); err == nil {
			return m, nil
		}
		failed = errors.Join(failed, err, m.Close())
	}
	return nil, fmt.Errorf("%w: %w", ErrNoMemoryLimits, failed)
}

// Hold puts a process into it, with what it takes from now on.
func (m *MemoryLimit) Hold(p *Process) error {
	return write(filepath.Join(m.folder, "cgroup.procs"), strconv.Itoa(p.PID()))
}

// Close takes it away, once no process is in it.
func (m *MemoryLimit) Close() error { return os.Remove(m.folder) }

func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
