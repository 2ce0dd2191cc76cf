package server

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestWhatRunsOut checks what is said of a disk and of file descriptors: that there are enough only if that is known.
func TestWhatRunsOut(t *testing.T) {
	t.Parallel()
	broken := errors.New("input/output error")
	for name, c := range map[string]struct {
		room  room
		err   error
		wants string // empty if the disk has room
	}{
		"room":               {room{free: fullDisk, size: 1 << 30, freeFiles: 1, files: 100}, nil, ""},
		"a byte too few":     {room{free: fullDisk - 1, size: 1 << 30, freeFiles: 1, files: 100}, nil, "is full, or nearly"},
		"no room for a file": {room{free: 1 << 29, size: 1 << 30, files: 100}, nil, "no room for another file: all 100 are used"},
		"files uncounted":    {room{free: 1 << 29, size: 1 << 30}, nil, ""},
		"not told":           {room{}, errors.ErrUnsupported, ""},
		"unknown":            {room{}, broken, "the free disk space is unknown"},
	} {
		r := &Resources{folder: "/data", room: func(string) (room, error) { return c.room, c.err }}
		said(t, "disk: "+name, r.Disk(), c.wants)
	}
	for name, c := range map[string]struct {
		open  uint64
		err   error
		wants string
	}{
		"enough":                    {100 - spareFiles, nil, ""},
		"one too many":              {101 - spareFiles, nil, "85 of 100 file descriptors are open"},
		"none left":                 {0, syscall.EMFILE, "no file descriptor is left"},
		"none left, of the machine": {0, syscall.ENFILE, "no file descriptor is left"},
		"not told":                  {0, errors.ErrUnsupported, ""},
		"unknown":                   {0, broken, "the number of open file descriptors is unknown"},
	} {
		r := &Resources{files: func() (uint64, uint64, error) { return c.open, 100, c.err }}
		said(t, "files: "+name, r.Files(), c.wants)
	}
}

func said(t *testing.T, what string, got error, wants string) {
	t.Helper()
	if wants == "" && got != nil || wants != "" && (got == nil || !strings.Contains(got.Error(), wants)) {
		t.Errorf("%s: %v, want %q", what, got, wants)
	}
}

// TestWhatIsUnknownHasNoMetric checks that no number stands for one that the system did not tell.
func TestWhatIsUnknownHasNoMetric(t *testing.T) {
	t.Parallel()
	known := &Resources{
		room:  func(string) (room, error) { return room{free: 1, size: 2}, nil },
		files: func() (uint64, uint64, error) { return 3, 4, nil },
	}
	if told := testutil.CollectAndCount(known); told != 4 {
		t.Errorf("%d metrics, want 4", told)
	}
	unknown := &Resources{
		room:  func(string) (room, error) { return room{}, errors.ErrUnsupported },
		files: func() (uint64, uint64, error) { return 0, 0, syscall.EMFILE },
	}
	if told := testutil.CollectAndCount(unknown); told != 0 {
		t.Errorf("%d metrics of what is unknown", told)
	}
}

// TestResourcesAreAmongTheChecks checks that readiness depends on them.
func TestResourcesAreAmongTheChecks(t *testing.T) {
	t.Parallel()
	d := NewDiagnostics()
	d.AddResources(t.TempDir())
	d.SetStarting(nil)
	families, err := d.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	checks := map[string]bool{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				checks[f.GetName()+" "+l.GetValue()] = true
			}
		}
	}
	for _, check := range []string{"disk", "file descriptors"} {
		if !checks["causeway_ready "+check] {
			t.Errorf("readiness does not depend on %s", check)
		}
	}
}
