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

// TestDataFolderGoes checks that a server whose data folder, or an essential file of it, was moved, removed, replaced
// or hidden reports it to each writer, in readiness, doctor, log and metrics, and does not recreate it. Once it is
// back, the server continues, and after a restart it has what it acknowledged.
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
				return func() { d.onlyCopies(s.DataDir); d.remove(s.DataDir); back() }
			},
			"a copy in its place": func() func() {
				d.must(os.CopyFS(s.DataDir+".copy", os.DirFS(s.DataDir)))
				back := d.away(s.DataDir)
				d.must(os.Rename(s.DataDir+".copy", s.DataDir))
				return func() { d.remove(s.DataDir); back() }
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

// away moves a path away, and returns a function that moves it back. The server must not have created anything in its
// place.
func (d *disk) away(path string) (back func()) {
	d.must(os.Rename(path, path+".away"))
	return func() {
		if _, err := os.Lstat(path); err == nil {
			d.t.Errorf("something made %s anew", path)
		}
		d.must(os.Rename(path+".away", path))
	}
}

// remove removes a folder of a running server. It moves the folder first: the server may be about to write a file there.
func (d *disk) remove(folder string) {
	d.t.Helper()
	d.must(os.Rename(folder, folder+".removed"))
	d.must(os.RemoveAll(folder + ".removed"))
}

// onlyCopies checks that a folder that is not the server's has nothing of the server, except for what may be deleted:
// it only saves work after a restart, and is written again and again.
func (d *disk) onlyCopies(folder string) {
	d.t.Helper()
	entries, err := os.ReadDir(folder)
	d.must(err)
	for _, e := range entries {
		if name := strings.TrimPrefix(e.Name(), "."); name != "known" && !strings.HasPrefix(name, "holdings.sealed") {
			d.t.Errorf("the server wrote %s into a folder that is not its own", e.Name())
		}
	}
}

// canBind reports whether this machine allows mounts. If not, a copy is used instead.
func (d *disk) canBind(empty string) bool {
	over := d.t.TempDir()
	if err := unix.Mount(empty, over, "", unix.MS_BIND, ""); err != nil {
		d.t.Logf("this machine lets us mount nothing: %v", err)
		return false
	}
	d.must(unix.Unmount(over, unix.MNT_DETACH))
	return true
}

// refuses waits until every report of a server says that its folder has changed.
func (d *disk) refuses(s *cluster.Server, what string) {
	d.t.Helper()
	for range 2 {
		err := d.put(s, "refused")
		if cluster.StatusOf(err) != http.StatusServiceUnavailable ||
			!strings.Contains(err.Error(), "is no longer what this process has opened") {
			d.t.Errorf("%s, %s: a write was answered with %v", s.Name(), what, err)
		}
	}
	status, said, err := d.page(s, "/readyz")
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(said, s.DataDir) {
		d.t.Errorf("%s, %s: readiness says %d %s (%v)", s.Name(), what, status, said, err)
	}
	d.shows(s, 0, "causeway_ready", "data folder")
	out, err := d.Output(d.t.Context(), nil, "causewayctl", "doctor", "--address", s.API.URL(), "--diagnostics",
		"http://"+s.Address("diagnostics"))
	if exitStatus(err) != 1 || !strings.Contains(string(out), "is no longer what this process has opened") {
		d.t.Errorf("%s, %s: doctor says %s (%v)", s.Name(), what, out, err)
	}
}

// logged returns a function that waits until the log has the words once more than now.
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

// page reads a page of the diagnostics port.
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

// removed removes the folder for good. The server acknowledges nothing that a restart would lose.
func (d *disk) removed(s *cluster.Server) {
	d.t.Helper()
	d.remove(s.DataDir)
	d.refuses(s, "removed")
	if _, err := os.Lstat(s.DataDir); err == nil {
		d.t.Errorf("%s made its folder anew", s.Name())
	}
	s.Kill()
}
