package proxypatch

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// discoveredFilters returns the names of the HTTP filters that come by extension discovery.
func discoveredFilters(c *Config) (map[string]bool, error) {
	out := map[string]bool{}
	for _, r := range c.Listeners {
		if err := c.eachFilter(r, func(f *hcmv3.HttpFilter) {
			if discovers(f) {
				out[f.GetName()] = true
			}
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// AddedFilters returns the names of the HTTP filters of which the listeners of a configuration have more than before: an
// author may add one that has the name of another's.
func AddedFilters(before, after *Config) (added []string, err error) {
	for name, r := range after.Listeners {
		if r == before.Listeners[name] {
			continue
		}
		more := map[string]int{}
		if old := before.Listeners[name]; old != nil {
			if err := before.eachFilter(old, func(f *hcmv3.HttpFilter) { more[f.GetName()]-- }); err != nil {
				return nil, err
			}
		}
		if err := after.eachFilter(r, func(f *hcmv3.HttpFilter) { more[f.GetName()]++ }); err != nil {
			return nil, err
		}
		for name, n := range more {
			if n > 0 {
				added = append(added, name)
			}
		}
	}
	return added, nil
}

// eachFilter visits the HTTP filters of a listener.
func (c *Config) eachFilter(r *Resource, visit func(*hcmv3.HttpFilter)) error {
	listener, err := readAs[*listenerv3.Listener](c, r)
	if err != nil {
		return err
	}
	for _, chain := range chainsOf(listener) {
		for _, f := range chain.GetFilters() {
			manager := &hcmv3.HttpConnectionManager{}
			if !f.GetTypedConfig().MessageIs(manager) || f.GetTypedConfig().UnmarshalTo(manager) != nil {
				continue
			}
			for _, hf := range manager.GetHttpFilters() {
				visit(hf)
			}
		}
	}
	return nil
}
