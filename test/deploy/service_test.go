package deploy

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
)

// dynamicUser is the first user id that systemd assigns to services with DynamicUser.
const dynamicUser = 61184

// loaded holds the settings of a unit's [Service] section, in order.
type loaded map[string][]string

func (m *machine) unit(name string) loaded {
	m.t.Helper()
	for _, folder := range []string{"etc/systemd/system", "usr/lib/systemd/system"} {
		raw, err := os.ReadFile(m.path(folder + "/" + name + ".service"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(m.t, err)
		options, err := unit.DeserializeOptions(strings.NewReader(string(raw)))
		must(m.t, err)
		u := loaded{}
		for _, o := range options {
			if o.Section == "Service" {
				u[o.Name] = append(u[o.Name], o.Value)
			}
		}
		return u
	}
	m.t.Fatalf("no unit %s was installed", name)
	return nil
}

// one returns a setting that occurs once.
func (u loaded) one(t *testing.T, name string) string {
	t.Helper()
	if len(u[name]) != 1 {
		t.Fatalf("the unit says %s=%q, want one", name, u[name])
	}
	return u[name][0]
}

// service is a running unit.
type service struct {
	*serviceManager

	name  string
	cmd   *exec.Cmd
	ended chan error
	log   string
}

// start does what systemd does for a unit: a separate user, a state folder behind a link, the existing credentials, the
// variables of EnvironmentFile and no others except systemd's own, and a notification socket. The kernel's sandboxing
// is not emulated: systemd-analyze judges it. The program sees only the machine's root folder.
func (m *machine) start(name string) *service {
	m.t.Helper()
	u := m.unit(name)
	if u.one(m.t, "DynamicUser") != "yes" || u.one(m.t, "Type") != "notify" {
		m.t.Fatalf("%s: DynamicUser=%q, Type=%q", name, u["DynamicUser"], u["Type"])
	}
	user := dynamicUser
	seconds, err := strconv.Atoi(u.one(m.t, "WatchdogSec"))
	must(m.t, err)
	m.folder("run/systemd")
	socket := "run/systemd/notify-" + name
	s := &service{serviceManager: newSocket(m.t, m.path(socket)), name: name, ended: make(chan error, 1),
		log: filepath.Join(m.t.TempDir(), "log")}
	m.give(socket, user, user, 0o777)
	state := m.stateFolder(u.one(m.t, "StateDirectory"), u.one(m.t, "StateDirectoryMode"), user)
	env := append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG=C.UTF-8", "USER=" + name,
		"INVOCATION_ID=0123456789abcdef0123456789abcdef",
		"STATE_DIRECTORY=" + state, "NOTIFY_SOCKET=/" + socket, "WATCHDOG_USEC=" + strconv.Itoa(seconds*1_000_000),
		"CREDENTIALS_DIRECTORY=" + m.credentials(name, u["LoadCredential"], user),
	}, m.environment(u.one(m.t, "EnvironmentFile"))...)
	command := strings.Fields(strings.ReplaceAll(u.one(m.t, "ExecStart"), "${STATE_DIRECTORY}", state))
	s.cmd = exec.CommandContext(context.WithoutCancel(m.t.Context()), command[0], command[1:]...)
	s.cmd.Dir, s.cmd.Env, s.cmd.SysProcAttr = "/", env, inside(m.root, user, user)
	log, err := os.Create(s.log)
	must(m.t, err)
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	must(m.t, s.cmd.Start())
	go func() { s.ended <- s.cmd.Wait() }()
	m.services[name] = s
	m.t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		end := <-s.ended
		if said, err := os.ReadFile(s.log); m.t.Failed() {
			m.t.Logf("the journal of %s, which ended by %v (%v):\n%s", name, end, err, said)
		}
	})
	s.until("READY=1")
	s.until("WATCHDOG=1")
	return s
}

// stop emulates systemctl stop: the unit ends within its time limit, with status 0.
func (m *machine) stop(name string) {
	m.t.Helper()
	s := m.services[name]
	seconds, err := strconv.Atoi(m.unit(name).one(m.t, "TimeoutStopSec"))
	must(m.t, err)
	must(m.t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.until("STOPPING=1")
	select {
	case err := <-s.ended:
		s.ended <- nil
		if err != nil {
			m.t.Fatalf("%s ended with %v", name, err)
		}
	case <-time.After(time.Duration(seconds) * time.Second):
		m.t.Fatalf("%s did not end within %d s", name, seconds)
	}
	delete(m.services, name)
}

// stateFolder creates the folder of StateDirectory for a user that exists only while the service runs. systemd changes
// the owner of the contents only if the folder itself has another owner. The folder above belongs to systemd, which
// lets the service see it; here it is open to all users.
func (m *machine) stateFolder(name, mode string, user int) string {
	m.t.Helper()
	permissions, err := strconv.ParseUint(mode, 8, 32)
	must(m.t, err)
	private := "var/lib/private/" + name
	m.folder(private)
	if info, err := os.Stat(m.path(private)); err != nil || os.Geteuid() == 0 && owner(info) != user {
		must(m.t, err)
		must(m.t, filepath.WalkDir(m.path(private), func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, user, user)
		}))
	}
	m.give(private, user, user, os.FileMode(permissions))
	if err := os.Symlink("private/"+name, m.path("var/lib/"+name)); !errors.Is(err, fs.ErrExist) {
		must(m.t, err)
	}
	return "/" + private
}

// credentials creates the folder of the credentials in /etc/credstore. It omits missing ones.
func (m *machine) credentials(name string, load []string, user int) string {
	m.t.Helper()
	folder := "run/credentials/" + name + ".service"
	must(m.t, os.RemoveAll(m.path(folder)))
	m.folder(folder)
	for _, one := range load {
		id, source, ok := strings.Cut(one, ":")
		if !ok || strings.Contains(source, "/") {
			m.t.Fatalf("LoadCredential=%s", one)
		}
		kept := "etc/credstore/" + source
		raw, err := os.ReadFile(m.path(kept))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must(m.t, err)
		if info, err := os.Stat(m.path(kept)); err != nil || info.Mode().Perm() != 0o600 {
			m.t.Errorf("%s has mode %v (%v), want 600", kept, info.Mode().Perm(), err)
		}
		m.write(folder+"/"+id, string(raw))
		m.give(folder+"/"+id, user, user, 0o400)
	}
	m.give(folder, user, user, 0o500)
	return "/" + folder
}

// environment returns the contents of a file of variables, if it exists.
func (m *machine) environment(file string) []string {
	m.t.Helper()
	name, optional := strings.CutPrefix(file, "-/")
	raw, err := os.ReadFile(m.path(name))
	if optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(m.t, err)
	return slices.DeleteFunc(strings.Split(string(raw), "\n"), func(line string) bool { return line == "" })
}
