package etcd

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// link is a TCP proxy to one member that can lose everything in one direction while the connections stay, as one-way
// packet loss does.
type link struct {
	endpoint string
	target   string

	mu   sync.Mutex
	flow *sync.Cond
	// up and down are set while that direction is held back, ended once the link is closed; mu guards them.
	up, down, ended bool
}

func newLink(t *testing.T, endpoint string) *link {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{endpoint: "http://" + listener.Addr().String(), target: u.Host}
	l.flow = sync.NewCond(&l.mu)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { l.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.mu.Lock()
		l.ended = true
		l.flow.Broadcast()
		l.mu.Unlock()
		running.Wait()
	})
	return l
}

// lose holds back data to the member, or from it, until it is called again.
func (l *link) lose(up, down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up, l.down = up, down
	l.flow.Broadcast()
}

func (l *link) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	member, err := net.Dial("tcp", l.target)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.copy(member, client, &l.up) })
	l.copy(client, member, &l.down)
	both.Wait()
}

// copy forwards until either end closes.
func (l *link) copy(to, from net.Conn, held *bool) {
	defer func() { _ = to.Close(); _ = from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		for *held && !l.ended {
			l.flow.Wait()
		}
		ended := l.ended
		l.mu.Unlock()
		if ended || n > 0 && write(to, buffer[:n]) != nil || err != nil {
			return
		}
	}
}

func write(to net.Conn, b []byte) error {
	_, err := to.Write(b)
	return err
}
