package nameserver

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/hostnames"
)

// Config configures Serve. All fields are required.
type Config struct {
	Store store.Store
	Home  resources.Home
}

const (
	// maxQuery limits a query, in bytes, and maxAnswer a response.
	maxQuery, maxAnswer = 1232, 512
	// renewTime is the minimum interval between two reads of the store.
	renewTime = time.Second
)

// names is the table of the store, read again when the store changes.
type names struct {
	cfg      *Config
	table    table
	revision uint64
	read     time.Time
	ready    bool
}

// Serve answers UDP queries until ctx ends, one after the other: each costs one table lookup. It closes conn.
func Serve(ctx context.Context, conn net.PacketConn, cfg Config) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	n := &names{cfg: &cfg}
	query := make([]byte, maxQuery)
	for {
		size, from, err := conn.ReadFrom(query)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil || size == len(query):
			continue // an error about an earlier caller that is gone, or a query that is too long
		}
		n.renew(time.Now())
		if answer := n.table.answer(make([]byte, 0, maxAnswer), query[:size], n.ready); answer != nil {
			_, _ = conn.WriteTo(answer, from)
		}
	}
}

// renew reads the names again if the store has changed. A zone that has not received any HostnameGenerator yet does not
// know the names.
func (n *names) renew(now time.Time) {
	snap := n.cfg.Store.Snapshot()
	if !n.read.IsZero() && (snap.Revision() == n.revision || now.Sub(n.read) < renewTime) {
		return
	}
	n.table, n.revision, n.read, n.ready = read(snap, n.cfg.Home), snap.Revision(), now, false
	for range snap.List(store.Query{Type: resources.TypeHostnameGenerator}) {
		n.ready = true
		break
	}
}

// read returns the names of all meshes. A name in two meshes has no addresses, because a query does not name its mesh.
func read(snap store.Snapshot, home resources.Home) table {
	out := table{}
	for mesh := range snap.List(store.Query{Type: resources.TypeMesh}) {
		of := map[string]bool{}
		for _, s := range hostnames.Read(snap, mesh.Name, home).Services {
			for _, given := range s.Given {
				name := strings.ToLower(given.Hostname)
				if _, taken := out[name]; taken && !of[name] {
					out[name] = nil
					continue
				}
				out[name], of[name] = s.ClusterAddresses(), true
			}
		}
	}
	return out
}
