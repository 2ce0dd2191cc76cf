package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Free ports are looked for below the range from which systems take those of outgoing connections.
const (
	lowestPort  = 12000
	highestPort = 32000
	portTries   = 1000
)

// FreePort returns a loopback port on which nothing listens now. It is for programs that cannot be told to pick one.
func FreePort() (int, error) {
	for range portTries {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port between %d and %d on 127.0.0.1", lowestPort, highestPort)
}
