package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// ErrPeer reports that the other end of a loopback connection belongs neither to this server's user nor to root.
var ErrPeer = errors.New("the program at the other end runs as a different user than this server, as a proxy does")

// peerKey is the context key for the result of the check of a connection's other end.
type peerKey struct{}

type loopbackPeer struct {
	once sync.Once
	err  error
}

// withPeerCheck makes PeerIsOwner check once per connection, not once per request.
func withPeerCheck(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, &loopbackPeer{})
}

// PeerIsOwner returns nil if the kernel reports that a request over loopback comes from a process of this server's own
// user or of root. A proxy that is installed as a service, and every other account of the machine, are neither. ErrPeer
// reports that it does not; other errors say why that is unknown. Without such a kernel (not Linux), every local
// process passes.
func PeerIsOwner(r *http.Request) error {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return errors.New("unknown connection")
	}
	here, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return err
	}
	there, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return err
	}
	p, ok := r.Context().Value(peerKey{}).(*loopbackPeer)
	if !ok {
		return checkPeer(there, here)
	}
	p.once.Do(func() { p.err = checkPeer(there, here) })
	return p.err
}
