package main

import (
	"cmp"
	"fmt"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// frames is a codec that passes messages through unchanged: *[]byte both ways. Decoding the messages of hundreds of
// peers would cost more than the measured servers.
type frames struct{}

func (frames) Name() string { return "proto" }

func (frames) Marshal(v any) (mem.BufferSlice, error) {
	raw, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("a %T is not a frame", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*raw)}, nil
}

func (frames) Unmarshal(data mem.BufferSlice, v any) error {
	raw, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("a %T is not a frame", v)
	}
	*raw = data.Materialize()
	return nil
}

// response is the part of a DeltaDiscoveryResponse that a simulated peer reads. Resources are the values inside the
// Any.
type response struct {
	typeURL, nonce string
	resources      [][]byte
}

// Field numbers of the envoy.service.discovery.v3 messages.
const (
	responseResources, responseTypeURL, responseNonce = 2, 4, 5
	resourceAny, anyType, anyValue                    = 2, 1, 2
)

func readResponse(frame []byte) response {
	var r response
	eachField(frame, func(n protowire.Number, v []byte) {
		switch n {
		case responseResources:
			r.resources = append(r.resources, field(field(v, resourceAny), anyValue))
		case responseTypeURL:
			r.typeURL = string(v)
		case responseNonce:
			r.nonce = string(v)
		}
	})
	return r
}

// eachField visits the fields of a message that contain bytes.
func eachField(b []byte, visit func(protowire.Number, []byte)) {
	for len(b) > 0 {
		n, t, l := protowire.ConsumeTag(b)
		if l < 0 {
			return
		}
		b = b[l:]
		if t != protowire.BytesType {
			if l = protowire.ConsumeFieldValue(n, t, b); l < 0 {
				return
			}
			b = b[l:]
			continue
		}
		v, l := protowire.ConsumeBytes(b)
		if l < 0 {
			return
		}
		visit(n, v)
		b = b[l:]
	}
}

// field returns the last field n of a message, or nil if there is none.
func field(b []byte, n protowire.Number) []byte {
	var found []byte
	eachField(b, func(got protowire.Number, v []byte) {
		if got == n {
			found = v
		}
	})
	return found
}

// The fields of a Listener's chains, a chain's filters, and of a filter: its name, its configuration, and its
// discovery. The HTTP filters of a connection manager have the same three fields.
const (
	listenerChains, listenerDefaultChain           = 3, 25
	chainFilters, managerFilters                   = 3, 5
	filterName, filterConfig, filterConfigDiscovey = 1, 4, 5
	// managerRoutes is a connection manager's reference to its routes, routesName their name in it.
	managerRoutes, routesName = 3, 2
)

// managerType is the type of a connection manager, in an Any.
const managerType = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"

// discovered returns the names of the filters that a listener leaves to extension discovery, and of its routes.
func discovered(listener []byte) (filters, routes []string) {
	look := func(filter []byte) []byte {
		if field(filter, filterConfigDiscovey) != nil {
			filters = append(filters, string(field(filter, filterName)))
		}
		return field(field(filter, filterConfig), anyValue)
	}
	eachField(listener, func(n protowire.Number, chain []byte) {
		if n != listenerChains && n != listenerDefaultChain {
			return
		}
		eachField(chain, func(n protowire.Number, filter []byte) {
			if n != chainFilters {
				return
			}
			isManager := string(field(field(filter, filterConfig), anyType)) == managerType
			eachField(look(filter), func(n protowire.Number, inner []byte) {
				switch {
				case n == managerFilters:
					look(inner)
				case n == managerRoutes && isManager:
					routes = append(routes, string(field(inner, routesName)))
				}
			})
		})
	})
	return filters, routes
}

// Fields of a Cluster: its name, and how its endpoints are discovered, with their name there.
const (
	clusterName, clusterDiscovery = 1, 3
	discoveryName                 = 2
)

// endpointsOf returns the name under which the endpoints of a cluster are discovered; nothing if they are not.
func endpointsOf(cluster []byte) string {
	discovery := field(cluster, clusterDiscovery)
	if discovery == nil {
		return ""
	}
	return cmp.Or(string(field(discovery, discoveryName)), string(field(cluster, clusterName)))
}
