package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// gatewayKinds are the values of the query parameter `gateway`.
var gatewayKinds = []string{"true", "false", "builtin", "delegated"}

// parseProxies reads `tag` (KEY:VALUE, may be repeated) and `gateway`, which only lists of Dataplanes have.
func (l *selection) parseProxies(r *http.Request) error {
	q := r.URL.Query()
	for _, tag := range q["tag"] {
		key, value, ok := strings.Cut(tag, ":")
		if !ok || key == "" {
			return BadField("tag", "want KEY:VALUE, got %q", tag)
		}
		if l.tags == nil {
			l.tags = map[string]string{}
		}
		l.tags[key] = value
	}
	if l.gateway = q.Get("gateway"); l.gateway != "" && !slices.Contains(gatewayKinds, l.gateway) {
		return BadField("gateway", "want one of %s, got %q", strings.Join(gatewayKinds, ", "), l.gateway)
	}
	return nil
}

// matchesProxy reports whether the Dataplane matches the tags and gateway of the selection. Each tag must be on an
// inbound or on the gateway, and match at least a part of the value.
func (l *selection) matchesProxy(r *resources.Resource) bool {
	dp, err := resources.SpecAs[meshpb.Dataplane](r)
	if err != nil {
		return false
	}
	gateway := dp.GetNetworking().GetGateway()
	builtin := gateway.GetType() == meshpb.Dataplane_Networking_Gateway_BUILTIN
	switch l.gateway {
	case "true":
		if gateway == nil {
			return false
		}
	case "false":
		if gateway != nil {
			return false
		}
	case "builtin", "delegated":
		if gateway == nil || builtin != (l.gateway == "builtin") {
			return false
		}
	}
	for key, value := range l.tags {
		has := func(tags map[string]string) bool {
			got, ok := tags[key]
			return ok && strings.Contains(got, value)
		}
		onInbound := slices.ContainsFunc(dp.GetNetworking().GetInbound(), func(in *meshpb.Dataplane_Networking_Inbound) bool {
			return has(in.GetTags())
		})
		if !onInbound && !has(gateway.GetTags()) {
			return false
		}
	}
	return true
}
