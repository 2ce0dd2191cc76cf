package capture

import (
	"strings"
	"testing"
)

// socketTable is /proc/net/tcp as the kernel writes it: the proxy on all addresses, a stranger on one, and a connection.
const socketTable = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:3A99 00000000:0000 0A 00000000:00000000 00:00000000 00000000  5678        0 100 1 0000000000000000 100 0 0 10 0
   1: 0100007F:3A99 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 101 1 0000000000000000 100 0 0 10 0
   2: 0100007F:3A9E 00000000:0000 0A 00000000:00000000 00:00000000 00000000  5678        0 102 1 0000000000000000 100 0 0 10 0
   3: 0100007F:3A9F 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1000        0 103 1 0000000000000000 100 0 0 10 0
`

// TestWhoListens checks that all who listen on a port count, on whatever address and in whatever order: captured
// connections go to the most specific one.
func TestWhoListens(t *testing.T) {
	t.Parallel()
	const proxy = 5678
	for _, c := range []struct {
		port    uint16
		user    int
		problem string
	}{
		{15001, 1000, "user 1000 listens on port 15001 beside the proxy's 5678"},
		{15006, proxy, ""},
		{15007, -1, "nobody listens on port 15007"},
	} {
		users, err := ownersIn(strings.NewReader(socketTable), c.port)
		if err != nil {
			t.Fatal(err)
		}
		l := Listener{Port: c.port}
		l.judge(users, proxy)
		if (l.User == nil) != (c.user < 0) || l.User != nil && int(*l.User) != c.user || !strings.HasPrefix(l.Problem, c.problem) ||
			(l.Problem == "") != (c.problem == "") {
			t.Errorf("port %d: %+v, want user %d, %q", c.port, l, c.user, c.problem)
		}
	}
	alone := Listener{Port: 1}
	if alone.judge([]uint32{7}, proxy); alone.User == nil || *alone.User != 7 || !strings.Contains(alone.Problem, "not the proxy's") {
		t.Errorf("a stranger alone: %+v", alone)
	}
	both := Listener{Port: 1} // in one family each
	if both.judge([]uint32{7, proxy}, proxy); both.Problem == "" {
		t.Error("a stranger in IPv4, and the proxy in IPv6: no problem is told")
	}
}
