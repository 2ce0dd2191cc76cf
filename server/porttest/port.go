// Package porttest chooses ports for tests of programs that cannot pick one. Servers must not use it: they listen on
// port 0.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
)

// Ports are below the range that systems use for outgoing connections.
const (
	lowest  = 12000
	highest = 32000
	tries   = 1000
)

// Free returns a port of 127.0.0.1 on which nothing listens, and which Free returns to nobody else on this machine
// while this process lives. To that end, the process keeps a socket bound to the port that does not listen. A program
// that listens there with SO_REUSEADDR, as Envoy and Go programs do, succeeds and gets all connections; a request to
// the system for any port, or to Free for another, returns another one.
func Free() (int, error) {
	for range tries {
		port := lowest + rand.IntN(highest-lowest) //nolint:gosec // which one is not a secret //nolint:gosec // nobody gains by guessing it
		err := reserve(port)
		if err == nil {
			return port, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return 0, fmt.Errorf("port %d: %w", port, err)
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d on 127.0.0.1", lowest, highest)
}

// reserve binds a socket exclusively, which fails if the port has another one, also a reserved one, and then lets
// others bind to it too. The system closes the socket when the process ends.
func reserve(port int) error {
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}
	if err != nil {
		return errors.Join(err, syscall.Close(fd))
	}
	return nil
}
