package abuse

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestUnfinishedBodies checks that a caller with too many unfinished bodies is refused, by number and by bytes. Others
// are served meanwhile, and the caller is served again after closing them.
func TestUnfinishedBodies(t *testing.T) {
	w := newWorld(t)
	w.makeCredentials()
	for name, c := range map[string]struct{ begin, sent, more int }{"many": {64, 1, 0},
		"large": {8, 4_189_000, 100_000}} {
		t.Run(name, func(t *testing.T) {
			held := make([]*unfinished, c.begin)
			for i := range held {
				held[i] = w.begin(t, "root", 4_190_000, c.sent)
			}
			defer func() {
				for _, one := range held {
					_ = one.conn.Close()
				}
			}()
			small := "{type: MeshTimeout, mesh: default, name: of-bodies, spec: {targetRef: {kind: Mesh}, rules: [{default: {idleTimeout: 10s}}]}}"
			put := func(as, body string) (string, string) {
				one := side{As: as, Request: "PUT /meshes/default/meshtimeouts/of-bodies", Body: body}
				status, says, err := w.try(w.global, one)
				if err != nil {
					return "", err.Error() // such as a connection closed during the body
				}
				return status, says
			}
			eventually(t, "her to be refused", func() bool {
				status, says := put("root", small+"\n#"+strings.Repeat("x", c.more))
				if status == "429" && strings.Contains(says, "finish or close some of them") {
					return true
				}
				// The server was still reading the others: with this one beside them, one of them may be refused.
				for i, one := range held {
					if one.ended.Load() {
						held[i] = w.begin(t, "root", 4_190_000, c.sent)
					}
				}
				return false
			})
			if status, says := put("admin", small); status != "200" && status != "201" {
				t.Errorf("another: %s %s", status, says)
			}
			for _, one := range held {
				_ = one.conn.Close()
			}
			eventually(t, "her to be served again", func() bool {
				status, _ := put("root", small)
				return status == "200" || status == "201"
			})
		})
	}
}

// unfinished is a request without the end of its body. Ended means that the server has answered or closed it.
type unfinished struct {
	conn  net.Conn
	ended atomic.Bool
}

// begin sends the headers of a request and a part of its body.
func (w *world) begin(t *testing.T, as string, length, sent int) *unfinished {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(w.global.url, "https://"), w.global.tls())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(attemptTimeout)); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "PUT /meshes/default/meshtimeouts/of-bodies HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/yaml\r\nContent-Length: %d\r\n\r\n", w.of(w.global, as).token, length)
	if err == nil {
		_, err = io.WriteString(conn, strings.Repeat("#", sent))
	}
	if err != nil {
		t.Fatal(err)
	}
	one := &unfinished{conn: conn}
	go func() {
		_, _ = conn.Read(make([]byte, 1)) // until an answer, or the end
		_ = conn.Close()
		one.ended.Store(true)
	}()
	return one
}

// TestWaitsAreBounded has a user hold requests that wait for a revision or an audit entry: one above the limit is
// refused. Others are served meanwhile, and so is she once some of hers have ended.
func TestWaitsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.makeCredentials()
	for _, c := range []struct{ name, as, waits, done, status string }{
		{"for a revision", "nobody", "GET /meshes/default/meshtimeouts?revision=99999999", "GET /meshes/default/meshtimeouts?revision=1", "403"},
		{"for an entry of the audit log", "admin", "GET /_audit?wait=30s&event=back-up", "GET /_audit?wait=0s&event=back-up", "200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			const most = 64
			statuses := make(chan string, most+1)
			var held []net.Conn
			for range most + 1 {
				conn := w.ask(t, c.as, c.waits)
				held = append(held, conn)
				go func() {
					line := make([]byte, len("HTTP/1.1 429"))
					_, _ = io.ReadFull(conn, line) // one that waits is closed below
					statuses <- string(line)
				}()
			}
			if first := <-statuses; first != "HTTP/1.1 429" {
				t.Errorf("%d requests of one user wait, and the first that ends, ends with %q", most+1, first)
			}
			for as, twin := range map[string]struct{ request, want string }{
				c.as: {c.waits, "429"}, "vera": {"GET /meshes/default/meshtimeouts?revision=1", "200"},
			} {
				status, says, err := w.try(w.global, side{As: as, Request: twin.request})
				if err != nil || status != twin.want {
					t.Errorf("%s meanwhile: %s %s, %v; want %s", as, status, says, err, twin.want)
				}
			}
			for _, conn := range held {
				_ = conn.Close()
			}
			eventually(t, "her to be answered again", func() bool {
				status, _, _ := w.try(w.global, side{As: c.as, Request: c.done})
				return status == c.status
			})
		})
	}
}

// ask sends a request without a body, and reads no answer.
func (w *world) ask(t *testing.T, as, request string) net.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(w.global.url, "https://"), w.global.tls())
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", request,
		w.of(w.global, as).token)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
