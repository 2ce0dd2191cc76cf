package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsFileDescriptors checks that a server without free file descriptors acknowledges nothing that it does not
// store, and recovers by itself once it has some: waiting clients connect, and acknowledged writes survive a kill.
func TestFaultsFileDescriptors(t *testing.T) {
	t.Parallel()
	d := &disk{mesh: newMesh(t, "zone-1")}
	d.zone = d.zones["zone-1"]
	d.keeps()
	d.agrees()
	for _, s := range []*cluster.Server{d.global, d.zone} {
		before := d.descriptors(s, 0)
		knocking := d.knock(s)
		if newcomer(t.Context(), s.API.URL()+"/") == nil {
			t.Errorf("%s answers who has just come: it has file descriptors left", s.Name())
		}
		// Over an open connection it still answers, and its answers are true.
		for i := range 5 {
			if d.put(d.global, d.name(d.acknowledged)) == nil {
				d.acknowledged++
			} else {
				t.Logf("write %d without descriptors on %s was not acknowledged", i, s.Name())
			}
		}
		d.said(s)
		d.descriptors(s, before)
		for _, c := range knocking {
			_ = c.Close()
		}
		d.eventually(s.Name()+" to take new connections", func(ctx context.Context) error {
			return newcomer(ctx, s.API.URL()+"/")
		})
		d.eventually(s.Name()+" to be ready", func(ctx context.Context) error {
			_, err := s.Diagnostics(ctx, "/readyz")
			return err
		})
		if n, err := s.Metric(t.Context(), "causeway_accept_failures_total"); err != nil || n == 0 {
			t.Errorf("%s counted %v connections that it could not take (%v)", s.Name(), n, err)
		}
		d.keeps()
		d.agrees()
	}
	d.noProblems(d.global.API.URL())
	for _, s := range []*cluster.Server{d.global, d.zone} {
		s.Kill()
		d.must(s.Start(t.Context()))
	}
	d.agrees()
}

// said waits until the log and the metric report that connections are not accepted.
func (d *disk) said(s *cluster.Server) {
	d.t.Helper()
	d.eventually(s.Name()+" to say that it takes no connections", func(context.Context) error {
		if !strings.Contains(s.Log(), "cannot accept connections") {
			return errNotYet
		}
		return nil
	})
}

// descriptors limits a server's file descriptors to those in use, or to n if n is not 0. It returns the previous limit.
func (d *disk) descriptors(s *cluster.Server, n uint64) (before uint64) {
	d.t.Helper()
	var old unix.Rlimit
	d.must(unix.Prlimit(s.PID(), unix.RLIMIT_NOFILE, nil, &old))
	if n == 0 {
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.PID()))
		d.must(err)
		n = uint64(len(open))
	}
	d.must(unix.Prlimit(s.PID(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: old.Max}, nil))
	return old.Cur
}

// knock connects to all ports of a server, more often than it can answer.
func (d *disk) knock(s *cluster.Server) (open []net.Conn) {
	d.t.Helper()
	for _, port := range []string{"api", "kds", "xds", "diagnostics"} {
		for range 20 {
			if s.Address(port) == "" {
				continue
			}
			c, err := (&net.Dialer{Timeout: time.Second}).DialContext(d.t.Context(), "tcp", s.Address(port))
			if err == nil {
				open = append(open, c)
			}
		}
	}
	return open
}

// newcomer sends a request over a new connection.
func newcomer(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err == nil {
		err = resp.Body.Close()
	}
	return err
}
