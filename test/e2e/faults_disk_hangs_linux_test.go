package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// ioctl requests that freeze and thaw a file system.
const (
	freezeFS = 0xc0045877
	thawFS   = 0xc0045878
)

// hold makes the volume neither accept nor refuse a write until the returned function is called.
func (v *volume) hold() (release func()) {
	v.t.Helper()
	f, err := os.Open(v.at)
	v.must(err)
	v.must(unix.IoctlSetInt(int(f.Fd()), freezeFS, 0))
	held := true
	release = func() {
		if held {
			held = false
			v.must(unix.IoctlSetInt(int(f.Fd()), thawFS, 0))
			_ = f.Close()
		}
	}
	v.t.Cleanup(release) // a process that waits for the disk cannot be killed
	return release
}

// TestFaultsDiskHangs repeatedly makes the disk of a global, and of a zone, neither accept nor refuse a write for a
// while. Meanwhile readers are answered, and after ten seconds readiness, metrics and doctor report what the server
// waits for. Once the disk continues, each write is acknowledged or was refused, the server is ready, ends on SIGTERM
// in time, and both sides agree.
func TestFaultsDiskHangs(t *testing.T) {
	t.Parallel()
	d := &disk{mesh: newMesh(t, "zone-1")}
	d.zone = d.zones["zone-1"]
	d.keeps()
	d.agrees()
	for _, s := range []*cluster.Server{d.global, d.zone} {
		v := d.onVolume(s)
		if v == nil {
			t.Log("this machine lets nobody mount a file, and only a file system of one's own may hang")
			return
		}
		spells := []time.Duration{time.Second / 2}
		if *faultsLong {
			spells = []time.Duration{5 * time.Second, 5 * time.Second, 5 * time.Second, time.Minute}
		}
		for _, spell := range spells {
			v.hangs(s, spell)
		}
		if took, err := d.ends(s); err != nil {
			t.Errorf("%s ends after %s: %v", s.Name(), took, err)
		}
		d.must(s.Start(t.Context()))
		d.agrees()
		d.noProblems(s.API.URL())
	}
	d.noProblems(d.global.API.URL())
}

// hangs makes the disk of a server hang for a while during a write to it, and one to the global that syncs to the zone.
func (v *volume) hangs(s *cluster.Server, lasts time.Duration) {
	v.t.Helper()
	release := v.hold()
	begun := time.Now()
	answers := make(chan error, 1)
	name := v.name(v.acknowledged)
	go func() { answers <- v.put(v.global, name) }()
	all, err := timeouts(v.t.Context(), s)
	if err != nil || len(all) < v.acknowledged {
		v.t.Errorf("%s answers readers with %d of %d (%v)", s.Name(), len(all), v.acknowledged, err)
	}
	if lasts > 20*time.Second {
		why := "the disk neither takes nor refuses a write"
		v.eventually(s.Name()+" to say that "+why, func(context.Context) error {
			status, said, err := v.page(s, "/readyz")
			if err == nil && (status != http.StatusServiceUnavailable || !strings.Contains(said, why)) {
				err = fmt.Errorf("readiness says %d %s", status, said)
			}
			return err
		})
		v.t.Logf("%s says so after %s", s.Name(), time.Since(begun).Round(time.Millisecond))
	}
	during(v.t.Context(), lasts-time.Since(begun))
	release()
	select {
	case err := <-answers:
		if err != nil {
			v.t.Logf("%s: the write was answered with %v", s.Name(), err)
			v.eventually("the write to be repeated", func(context.Context) error { return v.put(v.global, name) })
		}
	case <-time.After(patience):
		v.t.Fatalf("%s: the write has no answer", s.Name())
	}
	v.acknowledged++
	v.ready(s)
	v.agrees()
}
