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

// access is who may use a TCP inbound. Envoy judges a TCP connection once; to end those of clients who lost their access, the
// inbound's filter chain is replaced, and Envoy closes the connections of the old one when its drain time is over
// (engine-notes, "Connections when a policy changes"). HTTP needs none of this: each request is judged.
type access struct {
	rules matching.Rules
	// mark is in the metadata of the filter chain, and changes when somebody may have lost access.
	mark string
	// filter is the version of the filter that enforces them. Restored: the mark is from before a restart, and the rules are not known.
	filter   string
	restored bool
	// closed says why nobody gets in, whatever the rules say; empty where they are enforced.
	closed string
}

// next is the access by new rules; version is that of the filter that enforces them, and the first mark. A mark from before a restart
// stays while the filter does; what else the rules were is not known then, so any other filter counts as a loss.
func (a access) next(rules matching.Rules, version string) access {
	out := access{rules: rules, filter: version, mark: version}
	switch {
	case a.mark == "":
	case a.filter == version, !a.restored && !rbac.Shrinks(a.rules, rules, matching.TCP):
		out.mark = a.mark
	case a.mark == version: // what is lost now was lost, and given again, before
		sum := sha256.Sum256([]byte(version))
		out.mark = hex.EncodeToString(sum[:len(version)/2])
	}
	return out
}

// metadata is that of the filter chain.
func (a access) metadata() *corev3.Metadata {
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"causeway": {Fields: map[string]*structpb.Value{"access": structpb.NewStringValue(a.mark)}},
	}}
}

// accesses are those of a Dataplane's TCP inbounds, by section.
type accesses map[string]access

// closed is what is to be said of inbounds that let nobody in.
func (a accesses) closed() string {
	var out []string
	for _, section := range slices.Sorted(maps.Keys(a)) {
		if text := a[section].closed; text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

// replaced reports whether some filter chain of o is another one in a.
func (a accesses) replaced(o accesses) bool {
	for section, old := range o {
		if now, there := a[section]; there && now.mark != old.mark {
			return true
		}
	}
	return false
}
