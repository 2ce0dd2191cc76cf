package main

import (
	"errors"
	"io"
	"net"
	"sync"
)

// door leads connections to an address of this machine into a cluster, as a load balancer does.
type door struct {
	listener net.Listener
	target   string
	serving  sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool // guarded by mu; nil once the door is closed
}

// open listens on an address and leads connections to another.
func open(address, target string) (*door, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	d := &door{listener: l, target: target, open: map[net.Conn]bool{}}
	d.serving.Go(d.accept)
	return d, nil
}

func (d *door) accept() {
	for {
		from, err := d.listener.Accept()
		if err != nil {
			return // it is closed
		}
		d.serving.Go(func() { d.lead(from) })
	}
}

func (d *door) lead(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", d.target)
	if err != nil {
		return // the zone tries again
	}
	defer to.Close()
	if !d.keep(from, to) {
		return
	}
	defer d.forget(from, to)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{to, from}, {from, to}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close()
		})
	}
	both.Wait()
}

func (d *door) keep(conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range conns {
		if d.open != nil {
			d.open[c] = true
		}
	}
	return d.open != nil
}

func (d *door) forget(conns ...net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range conns {
		delete(d.open, c)
	}
}

func (d *door) close() error {
	err := d.listener.Close()
	d.mu.Lock()
	for c := range d.open {
		err = errors.Join(err, ignoreClosed(c.Close()))
	}
	d.open = nil
	d.mu.Unlock()
	d.serving.Wait()
	return err
}

// ignoreClosed drops the error of a connection that its other side closed first.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
