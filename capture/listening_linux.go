package capture

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// listening is the state of a TCP socket that accepts connections, in /proc/net/tcp.
const listening = "0A"

// listeners returns who has the ports open that s redirects to.
func listeners(s *Settings) ([]Listener, error) {
	var out []Listener
	for _, l := range []Listener{{Port: s.InboundPort, For: "inbound"}, {Port: s.OutboundPort, For: "outbound"}} {
		if l.Port == 0 {
			continue
		}
		l.Families = []string{}
		for _, family := range []struct{ name, file string }{{"IPv4", "tcp"}, {"IPv6", "tcp6"}} {
			user, open, err := owner(family.file, l.Port)
			if err != nil {
				return nil, err
			}
			if open {
				l.Families = append(l.Families, family.name)
				if l.User == nil || *l.User == s.ProxyUser {
					l.User = &user
				}
			}
		}
		switch {
		case l.User == nil:
			l.Problem = fmt.Sprintf("nobody listens on port %d: captured connections are refused until the proxy runs", l.Port)
		case *l.User != s.ProxyUser:
			l.Problem = fmt.Sprintf("user %d listens on port %d, not the proxy's %d: captured connections go to it", *l.User,
				l.Port, s.ProxyUser)
		}
		out = append(out, l)
	}
	return out, nil
}

// owner returns the user who listens on a port in the network of this thread.
func owner(file string, port uint16) (user uint32, open bool, err error) {
	f, err := os.Open("/proc/thread-self/net/" + file)
	if os.IsNotExist(err) {
		return 0, false, nil // no such family
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // number, local address, remote address, state, ..., user
		if len(fields) < 8 || fields[3] != listening || !strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
			continue
		}
		id, err := strconv.ParseUint(fields[7], 10, 32)
		return uint32(id), err == nil, err
	}
	return 0, false, lines.Err()
}
