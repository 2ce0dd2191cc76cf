package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// access describes who may use a TCP inbound. Envoy judges a TCP connection once. To end connections of clients that
// lost access, the server replaces the inbound's filter chain, and Envoy closes the old chain's connections when its
// drain time is over (engine-notes, "Connections when a policy changes"). HTTP needs none of this: Envoy judges each
// request.
type access struct {
	rules matching.Rules
	// mark is part of the filter chain's metadata. It changes when a client may have lost access.
	mark string
	// filter is the version of the filter that enforces the rules. restored means that the mark predates a restart, so
	// the rules behind it are unknown.
	filter   string
	restored bool
	// closed is the reason why the inbound admits no client regardless of the rules. It is empty if the rules are
	// enforced.
	closed string
}

// next returns the access under new rules. version is the version of the filter that enforces them, and the first mark.
// A mark that predates a restart stays while the filter stays. Its rules are unknown, so any other filter counts as a
// loss.
func (a access) next(rules matching.Rules, version string) access {
	out := access{rules: rules, filter: version, mark: version}
	switch {
	case a.mark == "":
	case a.filter == version, !a.restored && !rbac.Shrinks(a.rules, rules, matching.TCP):
		out.mark = a.mark
	case a.mark == version: // access that is lost now was lost and granted again before
		sum := sha256.Sum256([]byte(version))
		out.mark = hex.EncodeToString(sum[:len(version)/2])
	}
	return out
}

// metadata returns the metadata of the filter chain.
func (a access) metadata() *corev3.Metadata {
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"causeway": {Fields: map[string]*structpb.Value{"access": structpb.NewStringValue(a.mark)}},
	}}
}

// accesses holds the access of each TCP inbound of a Dataplane, by section.
type accesses map[string]access

// closed returns the reasons of the inbounds that admit no client.
func (a accesses) closed() string {
	var out []string
	for _, section := range slices.Sorted(maps.Keys(a)) {
		if text := a[section].closed; text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

// replaced reports whether a filter chain of o is a different one in a.
func (a accesses) replaced(o accesses) bool {
	for section, old := range o {
		if now, there := a[section]; there && now.mark != old.mark {
			return true
		}
	}
	return false
}
