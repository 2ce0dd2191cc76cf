package xds

import (
	"bytes"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// gatewayKey is what a plan depends on of a gateway; the zero value if the proxy serves none.
type gatewayKey struct {
	resource *resources.Resource
	// problems identifies the listeners that are not served.
	problems string
	// logs identifies the policies for its logs, and from holds the proxy's fields in them.
	logs string
	from logSource
	// admin is the port of the proxy's admin interface, to which no log goes.
	admin uint32
	// by is the provider of its spans; nil for none.
	by *provider
}

// gatewayKey returns the key of the proxy's gateway. It has the proxy's fields only if a log may contain them.
func (s *sender) gatewayKey() gatewayKey {
	t := s.target
	if t.gateway == nil {
		return gatewayKey{}
	}
	key := gatewayKey{resource: t.gateway.resource, problems: strings.Join(t.gateway.problems, "\n"), by: t.spans(),
		logs: matching.Selected(t.match, s.policies, resources.TypeMeshAccessLog)}
	if key.logs != "" {
		key.from, key.admin = t.logSource(), t.measured.adminPort
		if !slices.ContainsFunc(s.policies, logsAddress) {
			key.from.address = ""
		}
	}
	return key
}

// logsAddress reports whether logs of a policy may contain the proxy's address. Default lines do not.
func logsAddress(p *matching.Policy) bool {
	return p.Resource.Type == resources.TypeMeshAccessLog && bytes.Contains(p.Resource.Spec.JSON(), []byte("KUMA_SOURCE_ADDRESS"))
}

// gatewayPart is the listener of a gateway's port without its address, which is the proxy's own. Proxies share it. It
// is immutable.
type gatewayPart struct {
	gatewayPartKey
}

type gatewayPartKey struct {
	name string
	port uint32
	// config is the rest of the listener, marshalled.
	config string
}

// placed is a gateway's listener with what it was built from.
type placed struct {
	part *gatewayPart
	at   endpoint
	*resource
}

// place adds a gateway's listeners, at the proxy's own address.
func (s *sender) place(p *plan, out *sending) error {
	for _, part := range p.gateway {
		made := placed{part: part, at: endpoint{s.target.gateway.address, part.port}}
		if made.resource = s.last.placedAt(&made); made.resource == nil {
			address, err := pack(&listenerv3.Listener{Address: made.at.proto()})
			if err != nil {
				return err
			}
			// These bytes follow the rest of the marshalled listener, which makes one message.
			made.resource = resourceOf(part.name, &anypb.Any{TypeUrl: typeURLs[kindListener],
				Value: slices.Concat([]byte(part.config), address.Value)})
		}
		out.placed = append(out.placed, made)
		out.sets[kindListener] = append(out.sets[kindListener], made.resource)
	}
	return nil
}

// placedAt returns the listener that was built from the same part for the same address; nil if there is none.
func (s *sending) placedAt(of *placed) *resource {
	if s == nil {
		return nil
	}
	for i := range s.placed {
		if has := &s.placed[i]; has.part == of.part && has.at == of.at {
			return has.resource
		}
	}
	return nil
}
