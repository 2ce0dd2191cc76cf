package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestDataFolderGoes: a server whose data folder, or a file of it without which a restart is not the same, was moved, removed,
// replaced or hidden says so to each writer, in readiness, doctor, log and metrics, and makes none anew. Once it is back, the server goes on, and has
// after a restart what it acknowledged.
func TestDataFolderGoes(t *testing.T) {
	t.Parallel()
	d := &disk{mesh: newMesh(t, "zone-1")}
	d.zone = d.zones["zone-1"]
	d.keeps()
	d.agrees()
	for _, s := range []*cluster.Server{d.global, d.zone} {
		moves := map[string]func() (back func()){
			"moved": func() func() { return d.away(s.DataDir) },
			"another with its name": func() func() {
				back := d.away(s.DataDir)
				d.must(os.Mkdir(s.DataDir, 0o700))
				return func() { d.must(os.Remove(s.DataDir)); back() }
			},
			"a copy in its place": func() func() {
				d.must(os.CopyFS(s.DataDir+".copy", os.DirFS(s.DataDir)))
				back := d.away(s.DataDir)
				d.must(os.Rename(s.DataDir+".copy", s.DataDir))
				return func() { d.must(os.RemoveAll(s.DataDir)); back() }
			},
			"without the store's file": func() func() { return d.away(filepath.Join(s.DataDir, "causeway.db")) },
			"without its key":          func() func() { return d.away(filepath.Join(s.DataDir, "secrets.key")) },
		}
		if s == d.zone {
			moves["without its membership"] = func() func() { return d.away(filepath.Join(s.DataDir, "membership")) }
		}
		if empty := t.TempDir(); d.canBind(empty) {
			moves["a mount over it"] = func() func() {
				d.must(unix.Mount(empty, s.DataDir, "", unix.MS_BIND, ""))
				return func() { d.must(unix.Unmount(s.DataDir, unix.MNT_DETACH)) }
			}
		}
		for what, move := range moves {
			gone, again := d.logged(s, "not in its place"), d.logged(s, "in its place again")
			back := move()
			d.refuses(s, what)
			gone()
			back()
			d.keeps()
			d.shows(s, 1, "causeway_ready", "data folder")
			again()
		}
		d.agrees()
	}
	d.global.Kill()
	d.zone.Kill()
	d.must(d.global.Start(t.Context()))
	d.must(d.zone.Start(t.Context()))
	d.agrees()
	d.removed(d.global)
}

// away moves something, and returns what moves it back; nothing may have been made in its place.
func (d *disk) away(path string) (back func()) {
	d.must(os.Rename(path, path+".away"))
	return func() {
		if _, err := os.Lstat(path); err == nil {
			d.t.Errorf("something made %s anew", path)
		}
		d.must(os.Rename(path+".away", path))
	}
}

// canBind is false where this machine lets us mount nothing, which is no failure of the server: a copy in its place stands for it.
func (d *disk) canBind(empty string) bool {
	over := d.t.TempDir()
	if err := unix.Mount(empty, over, "", unix.MS_BIND, ""); err != nil {
		d.t.Logf("this machine lets us mount nothing: %v", err)
		return false
	}
	d.must(unix.Unmount(over, unix.MNT_DETACH))
	return true
}

// refuses waits until all that can be asked about a server says that its folder is not what it was.
func (d *disk) refuses(s *cluster.Server, what string) {
	d.t.Helper()
	for range 2 {
		err := d.put(s, "refused")
		if cluster.StatusOf(err) != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "is no longer what this process has opened") {
			d.t.Errorf("%s, %s: a write was answered with %v", s.Name(), what, err)
		}
	}
	status, said, err := d.page(s, "/readyz")
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(said, s.DataDir) {
		d.t.Errorf("%s, %s: readiness says %d %s (%v)", s.Name(), what, status, said, err)
	}
	d.shows(s, 0, "causeway_ready", "data folder")
	out, err := d.Output(d.t.Context(), nil, "causewayctl", "doctor", "--address", s.API.URL(), "--diagnostics", "http://"+s.Address("diagnostics"))
	if exitStatus(err) != 1 || !strings.Contains(string(out), "is no longer what this process has opened") {
		d.t.Errorf("%s, %s: doctor says %s (%v)", s.Name(), what, out, err)
	}
}

// logged waits, when it is called, for the log to have these words once more than now.
func (d *disk) logged(s *cluster.Server, words string) func() {
	before := strings.Count(s.Log(), words)
	return func() {
		d.t.Helper()
		d.eventually(s.Name()+" to log: "+words, func(context.Context) error {
			if n := strings.Count(s.Log(), words); n != before+1 {
				return fmt.Errorf("%d times, before %d", n, before)
			}
			return nil
		})
	}
}

// page asks the diagnostics port.
func (d *disk) page(s *cluster.Server, path string) (status int, said string, err error) {
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "http://"+s.Address("diagnostics")+path, nil)
	d.must(err)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), err
}

// removed takes the folder away for good: nothing is acknowledged that a restart would not have.
func (d *disk) removed(s *cluster.Server) {
	d.t.Helper()
	d.must(os.RemoveAll(s.DataDir))
	d.refuses(s, "removed")
	if _, err := os.Lstat(s.DataDir); err == nil {
		d.t.Errorf("%s made its folder anew", s.Name())
	}
	s.Kill()
}
