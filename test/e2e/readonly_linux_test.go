package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// volume is an ext4 file system in a file, mounted as a server's data folder.
type volume struct {
	*disk
	image, at string
	mounted   bool
}

// command runs a system program and reports whether it succeeded.
func (v *volume) command(name string, args ...string) bool {
	out, err := exec.CommandContext(v.t.Context(), name, args...).CombinedOutput()
	if err != nil {
		v.t.Logf("%s %v: %v: %s", name, args, err, out)
	}
	return err == nil
}

// mount mounts the image. It returns false if this machine does not allow it, which does not fail the test.
func (v *volume) mount() bool {
	v.mounted = v.command("mount", "-o", "loop", v.image, v.at)
	return v.mounted
}

func (v *volume) unmount() {
	if v.mounted {
		v.must(unix.Unmount(v.at, 0))
		v.mounted = false
	}
}

// onVolume restarts a server with its data folder on a file system of its own. It returns nil, and changes nothing, where
// this machine does not allow one.
func (d *disk) onVolume(s *cluster.Server) *volume {
	d.t.Helper()
	d.must(s.Stop(d.t.Context()))
	v := &volume{disk: d, image: filepath.Join(d.t.TempDir(), "image"), at: s.DataDir}
	d.must(os.WriteFile(v.image, nil, 0o600))
	d.must(os.Truncate(v.image, 64<<20))
	kept := v.at + ".kept"
	d.must(os.Rename(v.at, kept))
	d.must(os.Mkdir(v.at, 0o700))
	if !v.command("mkfs.ext4", "-q", v.image) || !v.mount() {
		d.must(os.Remove(v.at))
		d.must(os.Rename(kept, v.at))
		d.must(s.Start(d.t.Context()))
		return nil
	}
	d.t.Cleanup(func() {
		s.Kill()
		v.unmount()
	})
	if !v.command("cp", "-a", kept+"/.", v.at) || !v.command("sync", "-f", v.at) {
		d.t.Fatal("the data cannot be copied")
	}
	d.must(s.Start(d.t.Context()))
	return v
}

// TestDiskThatTurnsReadOnly checks that when the kernel makes a file system read-only, as after disk errors, the server
// reports it to each writer and still answers readers. After a repair, exactly the acknowledged writes are there.
func TestDiskThatTurnsReadOnly(t *testing.T) {
	t.Parallel()
	d := &disk{mesh: newMesh(t, "zone-1")}
	d.zone = d.zones["zone-1"]
	d.keeps()
	d.agrees()
	v := d.onVolume(d.global)
	if v == nil {
		t.Log("this machine lets nobody mount a file: TestDiskThatFillsUp stands for every disk that refuses")
		return
	}
	d.keeps()
	d.agrees()

	if !v.command("mount", "-o", "remount,abort", v.at) {
		t.Fatal("the file system cannot be made to fail")
	}
	for range 3 {
		if err := d.put(d.global, "refused"); cluster.StatusOf(err) < http.StatusInternalServerError {
			t.Errorf("a write to a disk that is read-only was answered with %v", err)
		}
	}
	d.agrees()

	d.global.Kill()
	v.unmount()
	v.command("e2fsck", "-fy", v.image) // its status reports repairs
	if !v.mount() {
		t.Fatal("the mended file system cannot be mounted")
	}
	d.must(d.global.Start(t.Context()))
	d.agrees()
	d.keeps()
	d.agrees()
}
