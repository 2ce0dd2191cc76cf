package app

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// TCP is an application that echoes what it receives.
type TCP struct {
	listener    net.Listener
	connections atomic.Int64
	wait        sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool // guarded by mu; nil once closed
}

// StartTCP listens on a free loopback port until Close.
func StartTCP() (*TCP, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &TCP{listener: l, open: map[net.Conn]bool{}}
	a.wait.Go(a.accept)
	return a, nil
}

// Port returns the port on 127.0.0.1.
func (a *TCP) Port() int { return a.listener.Addr().(*net.TCPAddr).Port }

// Count returns the number of connections so far.
func (a *TCP) Count() int64 { return a.connections.Load() }

// Close ends the application and its connections, and waits for that.
func (a *TCP) Close() error {
	err := a.listener.Close()
	a.mu.Lock()
	for c := range a.open {
		_ = c.Close()
	}
	a.open = nil
	a.mu.Unlock()
	a.wait.Wait()
	return err
}

func (a *TCP) accept() {
	for {
		c, err := a.listener.Accept()
		if err != nil {
			return
		}
		a.connections.Add(1)
		if !a.keep(c) {
			_ = c.Close()
			return
		}
		a.wait.Go(func() {
			defer a.forget(c)
			_, _ = io.Copy(c, c)
		})
	}
}

func (a *TCP) keep(c net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		return false
	}
	a.open[c] = true
	return true
}

func (a *TCP) forget(c net.Conn) {
	_ = c.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, c)
}
