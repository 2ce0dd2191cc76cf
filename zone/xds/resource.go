package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// kind is a type of xDS resource that the server serves, in the order in which proxies should get new ones.
type kind uint8

const (
	kindSecret kind = iota
	kindCluster
	kindEndpoint
	kindListener
	kindRoute
	kindExtension
	kinds
)

// typeURLs are the kinds' names on the wire.
var typeURLs = [kinds]string{
	kindSecret:    "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
	kindCluster:   "type.googleapis.com/envoy.config.cluster.v3.Cluster",
	kindEndpoint:  "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
	kindListener:  "type.googleapis.com/envoy.config.listener.v3.Listener",
	kindRoute:     "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
	kindExtension: "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
}

// kindOf finds the kind of a type URL.
func kindOf(typeURL string) (kind, bool) {
	i := slices.Index(typeURLs[:], typeURL)
	return kind(max(i, 0)), i >= 0
}

// keptByName reports whether proxies ask for resources of the kind by name, and drop them with the listener or cluster
// that uses them. The server never removes them: draining connections would be denied at once.
func (k kind) keptByName() bool { return k != kindCluster && k != kindListener }

func (k kind) String() string {
	return [...]string{kindSecret: "sds", kindCluster: "cds", kindEndpoint: "eds", kindListener: "lds",
		kindRoute: "rds", kindExtension: "ecds"}[k]
}

// resource is one xDS resource, marshalled once. It is immutable and shared by all streams; the version is a hash of
// its bytes, so it is the same after a restart.
type resource struct {
	name, version string
	delta         *discovery.Resource
}

// message is the interface of Envoy's generated messages.
type message interface {
	proto.Message
	Validate() error
}

// newResource validates and marshals m. Failing here keeps one bad resource from causing the refusal of a whole
// response.
func newResource(k kind, name string, m message) (*resource, error) {
	a, err := pack(m)
	if err != nil {
		return nil, err
	}
	if a.TypeUrl != typeURLs[k] {
		return nil, fmt.Errorf("%w: %s is not a %s resource", ErrConfig, a.TypeUrl, k)
	}
	return resourceOf(name, a), nil
}

// resourceOf returns the resource of a marshalled message.
func resourceOf(name string, a *anypb.Any) *resource {
	sum := sha256.Sum256(a.Value)
	version := hex.EncodeToString(sum[:12])
	return &resource{
		name: name, version: version,
		delta: &discovery.Resource{Name: name, Version: version, Resource: a},
	}
}

// marshalled validates m and marshals it, deterministically.
func marshalled(m message) ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return b, nil
}

// pack validates m and marshals it into an Any, deterministically.
func pack(m message) (*anypb.Any, error) {
	b, err := marshalled(m)
	if err != nil {
		return nil, err
	}
	return &anypb.Any{TypeUrl: typeURLOf(m), Value: b}, nil
}

func typeURLOf(m message) string {
	return "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName())
}

// set is the resources of one kind, sorted by name. It is immutable.
type set []*resource

func newSet(rs ...*resource) set {
	slices.SortFunc(rs, func(a, b *resource) int { return strings.Compare(a.name, b.name) })
	return rs
}

// get returns the resource of a name, or nil.
func (s set) get(name string) *resource {
	i, ok := slices.BinarySearchFunc(s, name, func(r *resource, n string) int { return strings.Compare(r.name, n) })
	if !ok {
		return nil
	}
	return s[i]
}

// equal reports whether both hold the same names in the same versions.
func (s set) equal(o set) bool {
	return slices.EqualFunc(s, o, func(a, b *resource) bool { return a == b || a.name == b.name && a.version == b.version })
}

// is reports whether both are the same slice.
func (s set) is(o set) bool { return len(s) == len(o) && (len(s) == 0 || &s[0] == &o[0]) }

// keepOf replaces resources by equal ones of old, so that unchanged ones stay shared and no bytes are held twice.
func (s set) keepOf(old set) set {
	for i, r := range s {
		if o := old.get(r.name); o != nil && o.version == r.version {
			s[i] = o
		}
	}
	return s
}
