package model

import "fmt"

// Global is the origin that is not a zone.
const Global = ""

// mesh is the only mesh.
const mesh = "default"

// Kind is the purpose of a resource.
type Kind string

// The kinds that travel differently. All but Service are policies.
const (
	// Service resources go from their zone to all servers.
	Service Kind = "MeshService"
	// System policies of the global go to all zones; those of a zone go to the global only.
	System Kind = "system"
	// Producer policies go from their zone to all servers.
	Producer Kind = "producer"
	// Consumer and Owner policies go from their zone to the global.
	Consumer Kind = "consumer"
	Owner    Kind = "workload-owner"
)

// Type returns the type of the kind's resources.
func (k Kind) Type() string {
	if k == Service {
		return "MeshService"
	}
	return "MeshTimeout"
}

// ID is a resource's identity at its origin.
type ID struct {
	Home            string // Global or a zone
	Type            string
	Namespace, Name string
}

func (id ID) String() string {
	home := id.Home
	if home == Global {
		home = "global"
	}
	return fmt.Sprintf("%s %s/%s of %s", id.Type, id.Namespace, id.Name, home)
}

// Written is what a writer has written for a resource.
type Written struct {
	Kind  Kind
	Value int
	// Stays reports that the writer has disabled synchronisation.
	Stays bool
}

// World holds everything that has been written and not deleted.
type World map[ID]Written

// Place is the key of a resource on a server. It is unique on that server.
type Place struct{ Type, Namespace, Name string }

// Seen is what a server shows of a resource.
type Seen struct {
	Value                    int
	Display                  string
	Zone, Origin, NamespaceL string // labels; NamespaceL is k8s.kuma.io/namespace
}

// At returns everything that a server must have. It must have nothing else.
func (w World) At(server string) map[Place]Seen {
	all := map[Place]Seen{}
	for id, r := range w {
		if !reaches(id, r, server) {
			continue
		}
		place := Place{Type: id.Type, Namespace: id.Namespace, Name: id.Name}
		if id.Home != server {
			place = Place{Type: id.Type, Name: hashed(mesh, id.Name, id.Home, id.Namespace)}
		}
		seen := Seen{Value: r.Value, Display: id.Name, Zone: id.Home, Origin: "global", NamespaceL: id.Namespace}
		if id.Home != Global && (server == Global || server == id.Home) {
			seen.Origin = "zone"
		}
		all[place] = seen
	}
	return all
}

// reaches reports whether a server must have a resource.
func reaches(id ID, r Written, server string) bool {
	switch {
	case id.Home == server:
		return true
	case r.Stays:
		return false
	case id.Home == Global:
		return true
	case server == Global:
		return true
	}
	return r.Kind == Service || r.Kind == Producer
}
