package capture

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// listening is the state of a TCP socket that accepts connections, in /proc/net/tcp.
const listening = "0A"

// families are the address families of listeners, with the kernel's files.
var families = []struct{ name, file string }{{"IPv4", "tcp"}, {"IPv6", "tcp6"}}

// listeners returns the owners of the ports that s redirects to.
func listeners(s *Settings) ([]Listener, error) {
	var out []Listener
	for _, l := range []Listener{{Port: s.InboundPort, For: "inbound"}, {Port: s.OutboundPort, For: "outbound"},
		{Port: s.ProofTo, For: "proof"}} {
		if l.Port == 0 {
			continue
		}
		l.Families = []string{}
		var users []uint32
		for _, family := range families {
			of, err := owners(family.file, l.Port)
			if err != nil {
				return nil, err
			}
			if len(of) > 0 {
				l.Families = append(l.Families, family.name)
				users = append(users, of...)
			}
		}
		l.judge(users, s.ProxyUser)
		out = append(out, l)
	}
	return out, nil
}

// judge decides who has the port, among all users who listen on it, on any address: a listener on a specific address
// gets that address's traffic, whoever has the others.
func (l *Listener) judge(users []uint32, proxy uint32) {
	if len(users) == 0 {
		l.Problem = fmt.Sprintf("nobody listens on port %d: captured connections are refused until the proxy runs", l.Port)
		return
	}
	l.User = &proxy
	for _, user := range users {
		if user != proxy {
			l.User = &user
			l.Problem = fmt.Sprintf("user %d listens on port %d, not the proxy's %d: captured connections go to it", user, l.Port, proxy)
			if slices.Contains(users, proxy) {
				l.Problem = fmt.Sprintf("user %d listens on port %d beside the proxy's %d: captured connections may go to it", user, l.Port, proxy)
			}
			return
		}
	}
}

// owners returns the users who listen on a port in the network of this thread.
func owners(file string, port uint16) ([]uint32, error) {
	f, err := os.Open("/proc/thread-self/net/" + file)
	if os.IsNotExist(err) {
		return nil, nil // no such family
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ownersIn(f, port)
}

// ownersIn reads a table of sockets.
func ownersIn(table io.Reader, port uint16) (users []uint32, err error) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // number, local address, remote address, state, ..., user
		if len(fields) < 8 || fields[3] != listening || !strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
			continue
		}
		id, err := strconv.ParseUint(fields[7], 10, 32)
		if err != nil {
			return nil, err
		}
		users = append(users, uint32(id))
	}
	return users, lines.Err()
}
