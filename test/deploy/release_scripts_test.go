package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackageScripts runs what packages run, with a systemctl that records what it is asked. Removing a package stops its
// server, installing it again starts a server that starts with the machine, an upgrade restarts one that runs, and
// nothing happens where systemd is not in charge.
func TestPackageScripts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		script, arg        string
		enabled, noSystemd bool
		want               string
	}{
		{script: "postinstall", arg: "configure", want: "daemon-reload, --quiet is-enabled a-unit, --no-block try-restart a-unit"},
		{script: "postinstall", arg: "configure", enabled: true, want: "daemon-reload, --quiet is-enabled a-unit, --no-block restart a-unit"},
		{script: "postinstall", arg: "1", enabled: true, noSystemd: true},
		{script: "preremove", arg: "remove", want: "stop a-unit"},
		{script: "preremove", arg: "0", want: "stop a-unit"},
		{script: "preremove", arg: "upgrade"},
		{script: "preremove", arg: "1"},
		{script: "preremove", arg: "remove", noSystemd: true},
		{script: "postremove", arg: "remove", want: "daemon-reload"},
		{script: "postremove", arg: "0", noSystemd: true},
	} {
		folder := t.TempDir()
		status := map[bool]string{true: "0", false: "1"}[tt.enabled]
		systemctl := "#!/bin/sh\necho \"$@\" >>" + folder + "/asked\ncase \"$*\" in *is-enabled*) exit " + status + ";; *) exit 1;; esac\n"
		must(t, os.WriteFile(filepath.Join(folder, "systemctl"), []byte(systemctl), 0o700)) //nolint:gosec // a program
		running := filepath.Join(folder, "systemd")
		if !tt.noSystemd {
			must(t, os.Mkdir(running, 0o700))
		}
		script := strings.NewReplacer("@UNIT@", "a-unit", "/run/systemd/system", running).Replace(
			read(t, "deploy", "release", tt.script+".sh"))
		shell := exec.CommandContext(t.Context(), "sh", "-c", script, tt.script, tt.arg)
		shell.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
		if out, err := shell.CombinedOutput(); err != nil {
			t.Errorf("%s %s fails, and the package with it: %v: %s", tt.script, tt.arg, err, out)
		}
		asked, err := os.ReadFile(filepath.Join(folder, "asked"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(strings.TrimSpace(string(asked)), "\n", ", "); got != tt.want {
			t.Errorf("%s %s (enabled %t): asks for %q, want %q", tt.script, tt.arg, tt.enabled, got, tt.want)
		}
	}
}
