package xds

import (
	"encoding/json"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/causeway-mesh/causeway/resources"
)

// applyTimeout limits the requests of a route. Without a policy only the client's own limits apply.
func applyTimeout(raw json.RawMessage, route *routev3.Route) error {
	var conf resources.TimeoutConf
	if err := json.Unmarshal(raw, &conf); err != nil || conf.HTTP == nil {
		return err
	}
	action := route.GetRoute()
	if d := optional(conf.HTTP.RequestTimeout); d != nil {
		action.Timeout = durationOf(d)
	}
	action.IdleTimeout = durationOf(optional(conf.HTTP.StreamIdleTimeout))
	if d := optional(conf.HTTP.MaxStreamDuration); d != nil {
		action.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: durationOf(d)}
	}
	return nil
}
