package deploy

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// maxExposure limits systemd's exposure rating of a unit, in tenths; 100 is worst. The rest is due to the servers' use
// of TCP.
const maxExposure = "12"

// hardening are the required settings of each unit. An empty value is an empty list.
var hardening = map[string]string{
	"Type": "notify", "WatchdogSec": "30", "DynamicUser": "yes", "ProtectSystem": "strict", "NoNewPrivileges": "yes",
	"CapabilityBoundingSet": "",
	"AmbientCapabilities":   "", "PrivateUsers": "yes", "PrivateDevices": "yes", "PrivateTmp": "yes",
	"ProtectHome": "yes", "RestrictNamespaces": "yes",
	"MemoryDenyWriteExecute": "yes", "SystemCallArchitectures": "native", "UMask": "0077", "StateDirectoryMode": "0700",
}

func units(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "deploy", "systemd", "*.service"))
	must(t, err)
	if len(found) != 2 {
		t.Fatalf("found the units %q, want one for each server", found)
	}
	return found
}

// TestUnits checks that the units have the required settings, and start one of our programs with flags that it has.
func TestUnits(t *testing.T) {
	for _, file := range units(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".service")
		options, err := unit.DeserializeOptions(strings.NewReader(read(t, "deploy", "systemd", filepath.Base(file))))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		said := map[string][]string{}
		for _, o := range options {
			said[o.Name] = append(said[o.Name], o.Value)
		}
		for key, want := range hardening {
			if !slices.Equal(said[key], []string{want}) {
				t.Errorf("%s: %s is %q, want %q", name, key, said[key], want)
			}
		}
		if !slices.Equal(said["StateDirectory"], []string{name}) ||
			!slices.Contains(said["SystemCallFilter"], "~@privileged @resources") {
			t.Errorf("%s: StateDirectory %q, SystemCallFilter %q", name, said["StateDirectory"], said["SystemCallFilter"])
		}
		command := strings.Fields(strings.Join(said["ExecStart"], " "))
		if command[0] != "/usr/bin/"+name || command[1] != "run" {
			t.Fatalf("%s starts %q", name, command)
		}
		checkFlags(t, filepath.Base(file), name, command[1:])
		checkSettings(t, name)
	}
}

var settingKey = regexp.MustCompile(`(?m)^(?:# )?([a-z-]+): `)

// checkSettings checks that every key of the settings file beside a unit is a flag, also those that are commented out.
func checkSettings(t *testing.T, program string) {
	t.Helper()
	file := strings.TrimPrefix(program, "causeway-") + ".yaml"
	known, keys := flagsOf(t, program, "run"), settingKey.FindAllStringSubmatch(read(t, "deploy", "systemd", file), -1)
	if len(keys) < 4 {
		t.Errorf("%s: found only the settings %q", file, keys)
	}
	for _, m := range keys {
		if !known[m[1]] {
			t.Errorf("%s: %s run has no setting %s", file, program, m[1])
		}
	}
}

// checkFlags checks that a program has every flag of a command line.
func checkFlags(t *testing.T, where, program string, args []string) {
	t.Helper()
	known := flagsOf(t, program, args[0])
	for _, arg := range args[1:] {
		if name, ok := strings.CutPrefix(arg, "--"); ok {
			if name, _, _ = strings.Cut(name, "="); !known[name] {
				t.Errorf("%s: %s %s has no flag --%s", where, program, args[0], name)
			}
		}
	}
}

// TestUnitsBySystemd makes systemd, if it is installed, check the units and rate the exposure of the servers.
func TestUnitsBySystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("no systemd-analyze here: the units are only read by TestUnits")
		return
	}
	for _, file := range units(t) {
		// The program must exist at the unit's path, but is in another folder.
		content := strings.ReplaceAll(read(t, "deploy", "systemd", filepath.Base(file)), "/usr/bin/", programs()+"/")
		placed := filepath.Join(t.TempDir(), filepath.Base(file))
		must(t, os.WriteFile(placed, []byte(content), 0o600))
		if said := output(t, analyze, "verify", "--man=no", placed); strings.Contains(said, filepath.Base(file)) {
			t.Errorf("systemd does not understand all of it:\n%s", said)
		}
		output(t, analyze, "security", "--no-pager", "--offline=true", "--threshold="+maxExposure, placed)
	}
}

// serviceManager is systemd's end of the notification socket.
type serviceManager struct {
	t    *testing.T
	conn *net.UnixConn
}

// newServiceManager makes programs that start afterwards notify it.
func newServiceManager(t *testing.T) *serviceManager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "3000000")
	return newSocket(t, path)
}

// newSocket listens for a service's notifications.
func newSocket(t *testing.T, path string) *serviceManager {
	t.Helper()
	_ = os.Remove(path) // of a previous run
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &serviceManager{t, conn}
}

// until reads messages until one contains the line.
func (m *serviceManager) until(line string) {
	m.t.Helper()
	must(m.t, m.conn.SetReadDeadline(time.Now().Add(patience)))
	buffer := make([]byte, 4096)
	for {
		n, err := m.conn.Read(buffer)
		if err != nil {
			m.t.Fatalf("waiting for %s: %v", line, err)
		}
		if slices.Contains(strings.Split(string(buffer[:n]), "\n"), line) {
			return
		}
	}
}

// TestServersTellSystemd starts both servers as the units do. They notify that they are ready, that they are alive, and
// that they stop. The zone joins with a credential, seals with a key that is a credential, and later needs only the
// key.
func TestServersTellSystemd(t *testing.T) {
	c := newCluster(t)
	manager := newServiceManager(t)
	global, err := c.StartGlobal(t.Context(), cluster.GlobalConfig{})
	must(t, err)
	manager.until("READY=1")
	manager.until("WATCHDOG=1")

	join, err := c.JoinString(t.Context(), global, "zone-1")
	must(t, err)
	credentials := t.TempDir()
	must(t, os.WriteFile(filepath.Join(credentials, "causeway.join"), []byte(join+"\n"), 0o400))
	must(t, os.WriteFile(filepath.Join(credentials, "causeway.secrets-key"),
		[]byte("a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=\n"), 0o400))
	t.Setenv("CREDENTIALS_DIRECTORY", credentials)
	manager = newServiceManager(t)
	zone, err := c.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1"})
	must(t, err)
	manager.until("READY=1")
	manager.until("WATCHDOG=1")
	must(t, zone.WaitMesh(t.Context(), "default"))
	if zones, err := global.API.List(t.Context(), "/zones"); err != nil || len(zones) != 1 || zones[0].Name != "zone-1" {
		t.Errorf("the global has the zones %v (%v)", zones, err)
	}
	if _, err := os.Stat(filepath.Join(zone.DataDir, "secrets.key")); err == nil {
		t.Error("the zone made a key of its own, though it has one as a credential")
	}
	must(t, zone.Stop(t.Context()))
	manager.until("STOPPING=1")

	must(t, os.Remove(filepath.Join(credentials, "causeway.join")))
	must(t, zone.Start(t.Context()))
	manager.until("READY=1")
	must(t, os.Remove(filepath.Join(credentials, "causeway.secrets-key")))
	must(t, zone.Stop(t.Context()))
	if err := zone.Start(t.Context()); err == nil || !strings.Contains(zone.Log(), "another key") {
		t.Errorf("without its key the zone should not start: %v", err)
	}
}
