package proxypatch

import (
	"errors"
	"fmt"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// filters changes network filters, or the HTTP filters of connection managers, in all filter chains of the listeners
// that match.
func (e *editor) filters(c *change, value proto.Message) error {
	for _, r := range selected(e.Listeners, c, c.within) {
		before, err := readAs[*listenerv3.Listener](e.Config, r)
		if err != nil {
			return err
		}
		listener := proto.CloneOf(before)
		for _, chain := range chainsOf(listener) {
			if c.kind == kindNetworkFilter {
				chain.Filters, err = edited(chain.Filters, c, value, e.budget)
			} else {
				err = eachManager(chain, func(m *hcmv3.HttpConnectionManager) (err error) {
					m.HttpFilters, err = edited(m.HttpFilters, c, value, e.budget)
					return err
				})
			}
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

// chainsOf returns all filter chains of a listener.
func chainsOf(l *listenerv3.Listener) []*listenerv3.FilterChain {
	if l.GetDefaultFilterChain() == nil {
		return l.GetFilterChains()
	}
	return append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain())
}

// eachManager changes the connection managers of a filter chain.
func eachManager(chain *listenerv3.FilterChain, do func(*hcmv3.HttpConnectionManager) error) error {
	for _, f := range chain.GetFilters() {
		manager := &hcmv3.HttpConnectionManager{}
		if !f.GetTypedConfig().MessageIs(manager) {
			continue
		}
		if err := f.GetTypedConfig().UnmarshalTo(manager); err != nil {
			return err
		}
		if err := do(manager); err != nil {
			return err
		}
		packed, err := seal(manager)
		if err != nil {
			return err
		}
		f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: packed}
	}
	return nil
}

// filter is a filter of a network filter chain, or of a connection manager.
type filter interface {
	proto.Message
	comparable
	GetName() string
	GetTypedConfig() *anypb.Any
}

// edited returns a list of filters after a change.
func edited[F filter](list []F, c *change, value proto.Message, b *budget) ([]F, error) {
	added, _ := any(value).(F)
	at := slices.IndexFunc(list, func(f F) bool { return is(c.name, f.GetName()) })
	switch c.Operation {
	case AddFirst:
		return slices.Insert(list, 0, added), nil
	case AddLast: // before the last one, which ends the chain: Envoy accepts nothing after it
		return slices.Insert(list, max(len(list)-1, 0), added), nil
	case AddBefore:
		if at >= 0 {
			return slices.Insert(list, at, added), nil
		}
		return list, nil
	case AddAfter:
		if at >= 0 {
			return slices.Insert(list, at+1, added), nil
		}
		return list, nil
	case Remove:
		return slices.DeleteFunc(list, func(f F) bool { return is(c.name, f.GetName()) }), nil
	}
	for i, f := range list {
		if !is(c.name, f.GetName()) {
			continue
		}
		next, err := patchedFilter(f, c, added, b)
		if err != nil {
			return nil, fmt.Errorf("filter %s: %w", f.GetName(), err)
		}
		list[i] = next
	}
	return list, nil
}

var errDiscovered = errors.New("it comes by extension discovery, and is not patched")

// patchedFilter returns a filter after a Patch of its typed config.
func patchedFilter[F filter](f F, c *change, by F, b *budget) (none F, err error) {
	if f.GetTypedConfig() == nil {
		return none, errDiscovered
	}
	var config *anypb.Any
	if len(c.JSONPatches) > 0 {
		m, err := open(f.GetTypedConfig())
		if err != nil {
			return none, err
		}
		if m, err = patchJSON(m, c.JSONPatches, b); err != nil {
			return none, err
		}
		config, err = seal(m)
		if err != nil {
			return none, err
		}
	} else if config, err = mergeAny(f.GetTypedConfig(), by.GetTypedConfig()); err != nil {
		return none, err
	}
	next := proto.Clone(f)
	switch v := next.(type) {
	case *listenerv3.Filter:
		v.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: config}
	case *hcmv3.HttpFilter:
		v.ConfigType = &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}
	}
	return next.(F), nil
}
