package proxypatch

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
)

// Resource is a cluster, listener or route configuration of a proxy.
type Resource struct {
	Name string
	// Origin is what created it, in the terms of matches. Tags are those of its inbound.
	Origin string
	Tags   map[string]string
	// From is what Config.Open reads the message from.
	From any
	// PatchedBy holds the policies that changed it, in order.
	PatchedBy []string

	// message is nil until somebody reads it. It is replaced, and never changed. checked means that it is the value of a
	// policy, which was validated with the policy.
	message proto.Message
	checked bool
	// forbidden returns why an ordinary patch may not add the message, wherever the proxy is; nil if the message is not the
	// value of a policy.
	forbidden func() string
}

// Config holds the patchable resources of one proxy, by name. It is not for concurrent use.
type Config struct {
	Clusters, Listeners, Routes map[string]*Resource
	// Open returns the message of a resource from its From: a *clusterv3.Cluster, *listenerv3.Listener or
	// *routev3.RouteConfiguration. It is called for what policies read, so that the rest costs nothing.
	Open func(from any) (proto.Message, error)
}

// resourceKind is a kind of patchable resources.
type resourceKind int

const (
	clusters resourceKind = iota
	listeners
	routes
	resourceKinds
)

// all returns the resources of a kind.
func (c *Config) all(k resourceKind) map[string]*Resource {
	return [...]map[string]*Resource{clusters: c.Clusters, listeners: c.Listeners, routes: c.Routes}[k]
}

// differing returns the names of a kind whose resources differ from those of another configuration, in order. It sorts
// no others: a patch changes few.
func (c *Config) differing(from *Config, k resourceKind) (names []string) {
	now, then := c.all(k), from.all(k)
	for name, r := range now {
		if then[name] != r {
			names = append(names, name)
		}
	}
	for name := range then {
		if now[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Read returns the message of a resource, or nil for no resource. It must not be changed.
func (c *Config) Read(r *Resource) (m proto.Message, err error) {
	switch {
	case r == nil:
		return nil, nil
	case r.message == nil:
		if r.message, err = c.Open(r.From); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	return r.message, nil
}

// readAs returns the message of a resource, as one of its type.
func readAs[M proto.Message](c *Config, r *Resource) (m M, err error) {
	read, err := c.Read(r)
	if err != nil {
		return m, err
	}
	m, ok := read.(M)
	if !ok {
		return m, fmt.Errorf("%s is a %T", r.Name, read)
	}
	return m, nil
}

// Problem is what is wrong with a conf. Path leads from the conf to the value: field names and indexes.
type Problem struct {
	Path []string
	Text string
}

// Error implements error.
func (p *Problem) Error() string {
	out := ""
	for _, part := range p.Path {
		switch {
		case part != "" && part[0] >= '0' && part[0] <= '9':
			out += "[" + part + "]"
		case out == "":
			out = part
		default:
			out += "." + part
		}
	}
	return out + ": " + p.Text
}

// editor applies the changes of one policy.
type editor struct {
	*Config
	policy string
	budget *budget
	// own marks the maps that are the editor's own; it shares the others with the configuration before.
	own [resourceKinds]bool
}

// edit returns the resources of a kind, to change them.
func (e *editor) edit(k resourceKind) map[string]*Resource {
	all := [...]*map[string]*Resource{clusters: &e.Clusters, listeners: &e.Listeners, routes: &e.Routes}[k]
	if !e.own[k] {
		e.own[k] = true
		if *all = maps.Clone(*all); *all == nil {
			*all = map[string]*Resource{}
		}
	}
	return *all
}

// Apply returns the configuration after the modifications of a policy, or c itself if they match nothing. The error is
// a *Problem that names the modification; then nothing of the policy is applied.
func (c *Config) Apply(policy string, edits *Edits) (*Config, error) {
	next := *c
	e := &editor{Config: &next, policy: policy, budget: newBudget()}
	for i := range edits.changes {
		one := &edits.changes[i]
		if err := e.apply(one); err != nil {
			return nil, &Problem{Path: []string{"appendModifications", fmt.Sprint(one.index), one.kind}, Text: err.Error()}
		}
	}
	if err := e.valid(c); err != nil {
		return nil, err
	}
	return e.Config, nil
}

func (e *editor) apply(c *readChange) error {
	if c.Value != nil {
		if err := e.budget.spend(len(*c.Value)); err != nil {
			return err
		}
	}
	switch c.kind {
	case kindCluster:
		return e.whole(clusters, c)
	case kindListener:
		return e.whole(listeners, c)
	case kindNetworkFilter, kindHTTPFilter:
		return e.filters(&c.change, c.message)
	}
	return e.hosts(&c.change, c.message)
}

// whole adds, patches and removes clusters or listeners.
func (e *editor) whole(k resourceKind, c *readChange) error {
	all := e.all(k)
	if c.Operation == Add {
		name := nameOf(c.message)
		if name == "" {
			return fmt.Errorf("value.name: is required")
		}
		if all[name] != nil {
			return fmt.Errorf("value.name: there is a %s %q already: use the operation Patch", c.kind, name)
		}
		e.edit(k)[name] = &Resource{Name: name, Origin: OriginPatch, message: c.message, checked: true, forbidden: c.forbidden,
			PatchedBy: []string{e.policy}}
		return nil
	}
	for _, r := range selected(all, &c.change, c.name) {
		if c.Operation == Remove {
			delete(e.edit(k), r.Name)
			continue
		}
		before, err := e.Read(r)
		if err != nil {
			return err
		}
		next, err := patched(before, &c.change, c.message, e.budget)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		if nameOf(next) != r.Name {
			return fmt.Errorf("%s: its name cannot be changed, as others refer to it by that", r.Name)
		}
		if err := e.set(k, r, next); err != nil {
			return err
		}
	}
	return nil
}

// set replaces the message of a resource, which was read.
func (e *editor) set(k resourceKind, r *Resource, m proto.Message) error {
	if err := e.budget.spend(proto.Size(m)); err != nil {
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	if proto.Equal(r.message, m) {
		return nil
	}
	next := *r
	next.message, next.checked, next.forbidden = m, false, nil
	if !slices.Contains(r.PatchedBy, e.policy) {
		next.PatchedBy = append(slices.Clone(r.PatchedBy), e.policy)
	}
	e.edit(k)[r.Name] = &next
	return nil
}

// selected returns the resources that a change selects by origin, name and tags, sorted by name.
func selected(all map[string]*Resource, c *change, name *string) (out []*Resource) {
	keys := maps.Keys(all)
	if name != nil {
		if all[*name] == nil {
			return nil
		}
		keys = slices.Values([]string{*name}) // the rest need not be looked at
	}
	for _, key := range slices.Sorted(keys) {
		r := all[key]
		if !is(c.origin, r.Origin) || !is(name, r.Name) {
			continue
		}
		fits := true
		for k, v := range c.tags {
			have, ok := r.Tags[k]
			fits = fits && ok && have == v
		}
		if fits {
			out = append(out, r)
		}
	}
	return out
}

// patched returns a message after a Patch.
func patched(m proto.Message, c *change, value proto.Message, b *budget) (proto.Message, error) {
	if value == nil {
		return patchJSON(m, c.JSONPatches, b)
	}
	next := proto.Clone(m)
	merge(next, value)
	return next, nil
}

// Closed returns the configuration without the listeners that others besides the application reach.
func (c *Config) Closed() *Config {
	out := *c
	out.Listeners = maps.Clone(c.Listeners)
	maps.DeleteFunc(out.Listeners, func(_ string, r *Resource) bool {
		return r.Origin == OriginInbound || r.Origin == OriginGateway || r.Origin == OriginOther
	})
	return &out
}

// nameOf returns the `name` of a resource.
func nameOf(m proto.Message) string {
	if named, ok := m.(interface{ GetName() string }); ok {
		return named.GetName()
	}
	return ""
}

// Same reports whether two configurations have the same resources.
func (c *Config) Same(o *Config) bool {
	for k := range resourceKinds {
		if len(c.differing(o, k)) > 0 {
			return false
		}
	}
	return true
}
