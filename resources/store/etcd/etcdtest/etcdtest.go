// Package etcdtest runs etcd clusters for tests. Each member is a process of its own, of the program in the folder member,
// and can be killed and restarted.
package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Cluster is a running cluster. It is for use by one goroutine.
type Cluster struct {
	Members []*Member
}

// Member is one process of a cluster.
type Member struct {
	// Endpoint is its client URL.
	Endpoint string
	folder   string
	args     []string // of package member
	process  *exec.Cmd
}

// Start starts a cluster of size members, which do not wait for disks, and stops it at the end of the test.
func Start(t testing.TB, size int) *Cluster {
	t.Helper()
	return start(t, size, "")
}

// StartAt is like Start, for one member that listens for clients on an address of this machine.
func StartAt(t testing.TB, host string) *Cluster {
	t.Helper()
	return startAt(t, host, 1, "")
}

// StartLimited is like Start, for one member that accepts requests up to a size in bytes, including etcd's own
// overhead.
func StartLimited(t testing.TB, bytes uint) *Cluster {
	t.Helper()
	return start(t, 1, fmt.Sprint("request=", bytes))
}

// StartQuota is like Start, for one member whose database may grow to a size in bytes.
func StartQuota(t testing.TB, bytes int64) *Cluster {
	t.Helper()
	return start(t, 1, fmt.Sprint("quota=", bytes))
}

func start(t testing.TB, size int, limit string) *Cluster {
	t.Helper()
	return startAt(t, "127.0.0.1", size, limit)
}

func startAt(t testing.TB, host string, size int, limit string) *Cluster {
	t.Helper()
	c := &Cluster{}
	var names []string
	var peers []string
	for i := range size {
		peers = append(peers, mustFreeURL(t))
		names = append(names, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	dir := t.TempDir()
	for i := range size {
		m := &Member{Endpoint: strings.Replace(mustFreeURL(t), "127.0.0.1", host, 1),
			folder: filepath.Join(dir, fmt.Sprint(i))}
		m.args = []string{fmt.Sprint("m", i), m.folder, m.Endpoint, peers[i], strings.Join(names, ","), limit}
		c.Members = append(c.Members, m)
	}
	for _, m := range c.Members {
		m.Start(t)
	}
	t.Cleanup(func() {
		for _, m := range c.Members {
			m.Kill()
		}
	})
	ready(t, c.Endpoints()...)
	return c
}

// Endpoints returns the members' client URLs.
func (c *Cluster) Endpoints() []string {
	var out []string
	for _, m := range c.Members {
		out = append(out, m.Endpoint)
	}
	return out
}

// Start starts the member's process, also after Kill.
func (m *Member) Start(t testing.TB) {
	t.Helper()
	cmd, err := command(m.args...)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	m.process = cmd
	if err := m.process.Start(); err != nil {
		t.Fatal(err)
	}
}

// Folder returns the member's data folder.
func (m *Member) Folder() string { return m.folder }

// Kill ends the member at once, as a crash would.
func (m *Member) Kill() {
	if m.process == nil {
		return
	}
	_ = m.process.Process.Kill()
	_ = m.process.Wait()
	m.process = nil
}

// Freeze stops the member without ending it, and returns once all of its threads are stopped. Thaw continues it.
func (m *Member) Freeze(t testing.TB) {
	t.Helper()
	if err := m.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for !stopped(m.process.Process.Pid) {
		if time.Now().After(deadline) {
			t.Fatal("the member goes on although it was stopped")
		}
		<-time.After(time.Millisecond)
	}
}

// stopped reports whether all threads of a process are stopped: the signal may take a moment to arrive.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		if _, state, found := strings.Cut(string(stat), ") "); !found || !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// Thaw undoes Freeze.
func (m *Member) Thaw() { _ = m.process.Process.Signal(syscall.SIGCONT) }

// Ready waits until the member answers. It does so once it has what a majority has, and then another one may be killed.
func (m *Member) Ready(t testing.TB) {
	t.Helper()
	ready(t, m.Endpoint)
}

// Leader waits until the cluster has a leader and returns it.
func (c *Cluster) Leader(t testing.TB) *Member {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		for _, m := range c.Members {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			r, err := client.Status(ctx, m.Endpoint)
			cancel()
			if err == nil && r.Header.MemberId == r.Leader {
				return m
			}
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatal("etcd has no leader")
	return nil
}

// Keys lists all keys in the cluster.
func (c *Cluster) Keys(t testing.TB) []string {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	r, err := client.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, kv := range r.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// ready waits until one of the endpoints answers a linearised read.
func ready(t testing.TB, endpoints ...string) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	deadline := time.Now().Add(time.Minute)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := client.Get(ctx, "ready")
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("etcd did not come up: %v", err)
		}
	}
}

// Exhaust fills a cluster of StartQuota until it refuses writes. The function that it returns makes room again, as an
// operator does it.
func (c *Cluster) Exhaust(t testing.TB) (free func()) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	const filler = "filler/"
	for i := 0; err == nil; i++ {
		_, err = client.Put(t.Context(), fmt.Sprint(filler, i), strings.Repeat("x", 1<<20))
	}
	if !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		deleted, err := client.Delete(t.Context(), filler, clientv3.WithPrefix())
		if err == nil {
			_, err = client.Compact(t.Context(), deleted.Header.Revision)
		}
		for _, endpoint := range c.Endpoints() {
			if err == nil {
				_, err = client.Defragment(t.Context(), endpoint)
			}
		}
		if err == nil {
			_, err = client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}) // all
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Wipe ends the member and starts it with an empty disk, like a new cluster.
func (m *Member) Wipe(t testing.TB) {
	t.Helper()
	m.Kill()
	if err := os.RemoveAll(m.folder); err != nil {
		t.Fatal(err)
	}
	m.Start(t)
}
