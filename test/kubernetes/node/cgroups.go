package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// daemons is the group of the node's own programs in its group. As on a machine of its own, they have the weight of one
// processor together, and the pods that of all.
const daemons = "daemons"

// weight is that of one processor in a hierarchy of version 1.
const weight = 1024

// makeCgroups makes the node's group in each hierarchy of version 1. In version 2 the kubelet makes its own.
func (n *Node) makeCgroups() error {
	hierarchies, err := filepath.Glob("/sys/fs/cgroup/*/cgroup.procs")
	if err != nil {
		return err
	}
	for _, procs := range hierarchies {
		parent := filepath.Dir(procs)
		group := filepath.Join(parent, n.name)
		if err := os.MkdirAll(group, 0o755); err != nil { //nolint:gosec // as the system makes them
			return err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // a new group of cpuset has none, and takes no process
			if content, err := os.ReadFile(filepath.Join(parent, file)); err == nil {
				if err := os.WriteFile(filepath.Join(group, file), content, 0o600); err != nil {
					return err
				}
			}
		}
		if _, err := os.Stat(filepath.Join(group, "cpu.shares")); err != nil {
			continue
		}
		if err := os.Mkdir(filepath.Join(group, daemons), 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // likewise
			return err
		}
		shares := fmt.Sprint(weight * (1 + runtime.NumCPU()))
		if err := os.WriteFile(filepath.Join(group, "cpu.shares"), []byte(shares), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroups removes the groups, from the innermost. The kernel lets one go a little after its last process.
func (n *Node) removeCgroups() error {
	return cluster.Until(context.Background(), 10*time.Second, "the control groups to go", func(context.Context) error {
		groups, err := filepath.Glob("/sys/fs/cgroup/*/" + n.name)
		if err != nil {
			return err
		}
		for _, group := range groups {
			var inner []string
			err = errors.Join(err, filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					inner = append(inner, path)
				}
				return nil // what is gone meanwhile is gone
			}))
			for i := len(inner) - 1; i >= 0; i-- {
				_ = os.Remove(inner[i])
			}
			if _, there := os.Stat(group); there == nil {
				err = errors.Join(err, fmt.Errorf("%s is there", group))
			}
		}
		return err
	})
}
