package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/pages"
)

// machine is a separate root folder in which the commands of a page install files, and in which programs run that see
// nothing else.
type machine struct {
	t    *testing.T
	root string
	// dir is the working folder of commands: it looks like the repository after make build.
	dir string
	// ports replaces each port of the pages with a free one.
	ports    *strings.Replacer
	services map[string]*service
}

// pagePorts are the default ports of the servers.
var pagePorts = []string{"5681", "5685", "5680", "5678"}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, root: t.TempDir(), dir: t.TempDir(), services: map[string]*service{}}
	must(t, os.Chmod(m.root, 0o755)) //nolint:gosec // other users run programs in it
	var pairs []string
	for _, port := range pagePorts {
		free, err := porttest.Free()
		must(t, err)
		pairs = append(pairs, port, strconv.Itoa(free))
	}
	m.ports = strings.NewReplacer(pairs...)
	for _, folder := range []string{"etc", "usr/bin", "run", "var/lib"} {
		m.folder(folder)
	}
	must(t, os.Symlink(programs(), filepath.Join(m.dir, "bin")))
	must(t, lookAt(filepath.Join(root, "deploy")))
	must(t, os.Symlink(filepath.Join(root, "deploy"), filepath.Join(m.dir, "deploy")))
	return m
}

// path returns the path of a machine's file outside the machine.
func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

// folder creates a folder that all users can read.
func (m *machine) folder(name string) {
	m.t.Helper()
	must(m.t, os.MkdirAll(m.path(name), 0o755)) //nolint:gosec // as on any machine
}

// write creates a file that all users can read and execute.
func (m *machine) write(name, content string) {
	m.t.Helper()
	m.folder(filepath.Dir(name))
	must(m.t, os.WriteFile(m.path(name), []byte(content), 0o755)) //nolint:gosec // as on any machine
}

// give changes the owner and mode of a file.
func (m *machine) give(name string, uid, gid int, mode os.FileMode) {
	m.t.Helper()
	if os.Geteuid() == 0 {
		must(m.t, os.Chown(m.path(name), uid, gid))
	}
	must(m.t, os.Chmod(m.path(name), mode))
}

// inside restricts a program to a root folder, as a user. If the tests do not run as root, it is their own user, in a
// namespace.
func inside(root string, uid, gid int) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Chroot: root, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return attributes
	}
	attributes.Cloneflags = syscall.CLONE_NEWUSER
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	return attributes
}

// place replaces the paths in a command of a page with those of the machine.
func (m *machine) place(text string) string {
	var pairs []string
	for _, folder := range []string{"/etc/", "/usr/bin/", "/var/lib/"} {
		pairs = append(pairs, folder, m.root+folder)
	}
	return strings.NewReplacer(pairs...).Replace(m.ports.Replace(text))
}

// shell runs a command of a page on the machine, as its administrator.
func (m *machine) shell(ctx context.Context, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-c", m.place(command))
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "PATH="+m.path("usr/bin")+":"+os.Getenv("PATH"),
		"CAUSEWAY_ADDRESS=http://127.0.0.1:"+m.ports.Replace("5681"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return string(out), nil
}

// follow runs a command until its output is the page's.
func (m *machine) follow(c pages.Command, run func(context.Context, string) (string, error)) {
	m.t.Helper()
	err := cluster.Until(m.t.Context(), patience, "what the page shows", func(ctx context.Context) error {
		out, err := run(ctx, c.Text)
		if err != nil {
			return err
		}
		want := make([]string, len(c.Output))
		for i, line := range c.Output {
			want[i] = m.place(line)
		}
		return pages.Shows(want, out, strings.NewReplacer())
	})
	if err != nil {
		m.t.Fatalf("line %d: $ %s\n%v", c.Line, c.Text, err)
	}
}

// owner returns the user id of a file's owner.
func owner(info os.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
