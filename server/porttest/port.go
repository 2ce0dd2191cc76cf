// Package porttest owns the choice of ports for tests that start programs which cannot be told to pick one. It must not
// be used by servers: those listen on port 0.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
)

// Ports are looked for below the range from which systems take those of outgoing connections.
const (
	lowest  = 12000
	highest = 32000
	tries   = 1000
)

// Free returns a port of 127.0.0.1 on which nobody listens, and that Free gives to nobody else on this machine while
// this process lives. For that the process keeps a socket that is bound to the port and does not listen: who listens
// there with SO_REUSEADDR, as Envoy and Go programs do, can, and gets all connections; who asks the system for any
// port, or Free for another, is given another.
func Free() (int, error) {
	for range tries {
		port := lowest + rand.IntN(highest-lowest) //nolint:gosec // which one is no secret //nolint:gosec // nobody gains by guessing it
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

// reserve binds a socket alone, which fails where there is another one, also one that was reserved, and then lets
// others bind beside it. The socket is never closed: the system does that when the process ends.
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
