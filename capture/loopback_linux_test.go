package capture_test

import (
	"os"
	"strings"
	"sync"
	"testing"
)

// TestLoopbackFromOutside: a neighbour on the wire that sends to the machine's loopback reaches nothing, captured or not.
// The listeners of a proxy are there that send with its own identity.
func TestLoopbackFromOutside(t *testing.T) {
	t.Parallel()
	server, client := newPair(t)
	if server == nil {
		return
	}
	server.serveAll()
	client.do(func() {
		for _, name := range []string{"all", "wire"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+name+"/route_localnet", []byte("1"), 0); err != nil {
				t.Error(err)
			}
		}
	})
	client.ip("addr del 127.0.0.1/8 dev lo", "route add 127.0.0.0/8 via "+server4+" dev wire src "+client4)
	server.install(both)
	if word := client.another().hears(otherUser, server4+":80"); word != "inbound 10.99.0.1:80" {
		t.Fatalf("the neighbour reaches nothing at all: %q", word)
	}
	var dialing sync.WaitGroup
	for _, address := range []string{"127.0.0.1:80", "127.0.0.1:15001", "127.10.0.1:80"} {
		neighbour := client.another()
		dialing.Go(func() {
			if word := neighbour.hears(otherUser, address); !strings.Contains(word, "timeout") {
				t.Errorf("a neighbour reaches %s: %q", address, word)
			}
		})
	}
	dialing.Wait()
}
