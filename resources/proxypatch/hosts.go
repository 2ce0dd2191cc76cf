package proxypatch

import (
	"fmt"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
)

// hosts changes the virtual hosts of route configurations: separate ones, and those within connection managers.
func (e *editor) hosts(c *change, value proto.Message) error {
	for _, r := range selected(e.Routes, c, c.within) {
		before, err := readAs[*routev3.RouteConfiguration](e.Config, r)
		if err != nil {
			return err
		}
		table := proto.CloneOf(before)
		if err := editHosts(table, c, value, e.budget); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		if err := e.set(routes, r, table); err != nil {
			return err
		}
	}
	for _, r := range selected(e.Listeners, c, nil) {
		before, err := readAs[*listenerv3.Listener](e.Config, r)
		if err != nil {
			return err
		}
		listener := proto.CloneOf(before)
		for _, chain := range chainsOf(listener) {
			err := eachManager(chain, func(m *hcmv3.HttpConnectionManager) error {
				if routes := m.GetRouteConfig(); routes != nil && is(c.within, routes.GetName()) {
					return editHosts(routes, c, value, e.budget)
				}
				return nil
			})
			if err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
		}
		if err := e.set(listeners, r, listener); err != nil {
			return err
		}
	}
	return nil
}

func editHosts(routes *routev3.RouteConfiguration, c *change, value proto.Message, b *budget) error {
	switch c.Operation {
	case Add:
		routes.VirtualHosts = append(routes.VirtualHosts, value.(*routev3.VirtualHost))
	case Remove:
		routes.VirtualHosts = slices.DeleteFunc(routes.VirtualHosts,
			func(h *routev3.VirtualHost) bool { return is(c.name, h.GetName()) })
	default:
		for i, h := range routes.VirtualHosts {
			if !is(c.name, h.GetName()) {
				continue
			}
			next, err := patched(h, c, value, b)
			if err != nil {
				return fmt.Errorf("virtual host %s: %w", h.GetName(), err)
			}
			routes.VirtualHosts[i] = next.(*routev3.VirtualHost)
		}
	}
	return nil
}
