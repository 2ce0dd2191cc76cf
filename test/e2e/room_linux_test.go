package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// notReady waits until readiness, metrics and doctor report that a check fails, and why.
func (d *disk) notReady(s *cluster.Server, check, why string) {
	d.t.Helper()
	d.eventually(s.Name()+" to say "+why, func(ctx context.Context) error {
		status, said, err := d.page(s, "/readyz")
		if err == nil && (status != http.StatusServiceUnavailable || !strings.Contains(said, why)) {
			err = fmt.Errorf("readiness says %d %s", status, said)
		}
		return err
	})
	d.shows(s, 0, "causeway_ready", check)
	out, err := d.Output(d.t.Context(), nil, "causewayctl", "doctor", "--address", s.API.URL(), "--diagnostics",
		"http://"+s.Address("diagnostics"))
	if exitStatus(err) != 1 || !strings.Contains(string(out), why) {
		d.t.Errorf("%s: doctor says %s (%v)", s.Name(), out, err)
	}
}

// ready waits until the server is ready, without a write to it.
func (d *disk) ready(s *cluster.Server) {
	d.t.Helper()
	d.eventually(s.Name()+" to be ready again", func(context.Context) error {
		status, said, err := d.page(s, "/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("readiness says %d %s", status, said)
		}
		return err
	})
}

// answers checks that a server which can write nothing answers questions that have a body, and forecasts.
func (d *disk) answers(s *cluster.Server) {
	d.t.Helper()
	for path, body := range map[string]any{
		"/_can-i":               map[string]string{"verb": "read", "type": "Mesh"},
		"/_batch?dryRun=server": timeoutOf("forecast", "1"),
		"/meshes/default/meshtimeouts/forecast?dryRun=server": timeoutOf("forecast", "1"),
	} {
		method := http.MethodPost
		if strings.HasPrefix(path, "/meshes/") {
			method = http.MethodPut
		}
		if err := s.API.Do(d.t.Context(), method, path, body, nil); err != nil {
			d.t.Errorf("%s, which writes nothing: %s %s: %v", s.Name(), method, path, err)
		}
	}
}

// TestReadinessKnowsWhatRunsOut checks that readiness, metrics and doctor of both servers report a store and an audit
// log that cannot be written, a full disk, and the lack of file descriptors. Each report ends by itself, without any
// write.
func TestReadinessKnowsWhatRunsOut(t *testing.T) {
	t.Parallel()
	d := &disk{mesh: newMesh(t, "zone-1")}
	d.zone = d.zones["zone-1"]
	d.keeps()
	d.agrees()
	for _, s := range []*cluster.Server{d.global, d.zone} {
		for check, limit := range map[string]uint64{"store": 4096, "audit log": 1} {
			d.ready(s)
			d.limit(s, limit)
			if err := d.put(s, "refused"); cluster.StatusOf(err) < http.StatusInternalServerError {
				t.Errorf("%s, %s: a write was answered with %v", s.Name(), check, err)
			}
			d.notReady(s, check, check+":")
			d.answers(s)
			d.limit(s, unix.RLIM_INFINITY)
			d.ready(s)
		}
		open, err := s.Metric(t.Context(), "causeway_open_files")
		d.must(err)
		var before unix.Rlimit
		d.must(unix.Prlimit(s.PID(), unix.RLIMIT_NOFILE, nil, &before))
		d.must(unix.Prlimit(s.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(open) + 8, Max: before.Max}, nil))
		d.notReady(s, "file descriptors", "file descriptors are open")
		d.must(unix.Prlimit(s.PID(), unix.RLIMIT_NOFILE, &before, nil))
		d.ready(s)
	}
	d.fills()
	d.keeps()
	d.agrees()
}

// fills puts the global on a small disk, fills the disk, and frees it again.
func (d *disk) fills() {
	d.t.Helper()
	if !d.onSmallDisk(d.global) {
		d.t.Log("what was shown of a store without room stands for it")
		return
	}
	d.ready(d.global)
	free := d.fill(d.global)
	d.notReady(d.global, "disk", "its disk is full")
	if free, err := d.global.Metric(d.t.Context(), "causeway_data_free_bytes"); err != nil || free >= 16<<20 {
		d.t.Errorf("it shows %v bytes free (%v)", free, err)
	}
	free()
	d.ready(d.global)
}

// onSmallDisk restarts a server with its data folder on a disk of 64 MiB. It reports false, and changes nothing, if the
// machine allows no mount.
func (d *disk) onSmallDisk(s *cluster.Server) bool {
	d.t.Helper()
	d.must(s.Stop(d.t.Context()))
	at := s.DataDir
	d.must(os.Rename(at, at+".kept"))
	d.must(os.Mkdir(at, 0o700))
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=64m,mode=0700"); err != nil {
		d.t.Logf("this machine lets us mount nothing (%v)", err)
		d.must(os.Remove(at))
		d.must(os.Rename(at+".kept", at))
		d.must(s.Start(d.t.Context()))
		return false
	}
	d.t.Cleanup(func() {
		s.Kill()
		d.must(unix.Unmount(at, unix.MNT_DETACH))
	})
	d.must(exec.CommandContext(d.t.Context(), "cp", "-a", at+".kept/.", at).Run())
	d.must(s.Start(d.t.Context()))
	return true
}

// fill fills the small disk of a server, and returns what makes room again.
func (d *disk) fill(s *cluster.Server) (free func()) {
	d.t.Helper()
	filler := filepath.Join(s.DataDir, "filler")
	if err := os.WriteFile(filler, make([]byte, 64<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		d.t.Fatalf("the disk takes all: %v", err)
	}
	return func() { d.must(os.Remove(filler)) }
}
