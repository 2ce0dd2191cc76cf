package proxypatch

import "encoding/json"

// Conf is the `default` of a MeshProxyPatch, in Kuma's format. The modifications are applied in order; those of several
// policies are concatenated.
type Conf struct {
	AppendModifications []Modification `json:"appendModifications,omitempty"`
}

// Modification changes resources of one kind. Exactly one of its fields is set.
type Modification struct {
	Cluster       *ClusterChange  `json:"cluster,omitempty"`
	Listener      *ListenerChange `json:"listener,omitempty"`
	NetworkFilter *FilterChange   `json:"networkFilter,omitempty"`
	HTTPFilter    *FilterChange   `json:"httpFilter,omitempty"`
	VirtualHost   *HostChange     `json:"virtualHost,omitempty"`
}

// Change is what happens to the resources that match. Value is a resource of Envoy as YAML. A Patch has either a Value,
// which is merged, or JSONPatches.
type Change struct {
	Operation   string      `json:"operation,omitempty"`
	Value       *string     `json:"value,omitempty"`
	JSONPatches []JSONPatch `json:"jsonPatches,omitempty"`
}

// JSONPatch is one operation of RFC 6902 on the resource's JSON form, whose fields are in camel case. For a filter it
// applies to the filter's typed config.
type JSONPatch struct {
	Op    string          `json:"op,omitempty"`
	Path  string          `json:"path,omitempty"`
	From  *string         `json:"from,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// ClusterChange changes clusters.
type ClusterChange struct {
	Match *ClusterMatch `json:"match,omitempty"`
	Change
}

// ClusterMatch selects clusters. All of its fields must match; without any, it selects all.
type ClusterMatch struct {
	Origin *string `json:"origin,omitempty"`
	Name   *string `json:"name,omitempty"`
}

// ListenerChange changes listeners.
type ListenerChange struct {
	Match *ListenerMatch `json:"match,omitempty"`
	Change
}

// ListenerMatch selects listeners. Tags are those of an inbound, in the Dataplane.
type ListenerMatch struct {
	Origin *string           `json:"origin,omitempty"`
	Name   *string           `json:"name,omitempty"`
	Tags   map[string]string `json:"tags,omitempty"`
}

// FilterChange changes the network filters of listeners, in all their filter chains, or the HTTP filters in their
// connection managers.
type FilterChange struct {
	Match *FilterMatch `json:"match,omitempty"`
	Change
}

// FilterMatch selects filters by their name and their listener.
type FilterMatch struct {
	Origin       *string           `json:"origin,omitempty"`
	Name         *string           `json:"name,omitempty"`
	ListenerName *string           `json:"listenerName,omitempty"`
	ListenerTags map[string]string `json:"listenerTags,omitempty"`
}

// HostChange changes the virtual hosts of route configurations.
type HostChange struct {
	Match *HostMatch `json:"match,omitempty"`
	Change
}

// HostMatch selects virtual hosts by their name and their route configuration.
type HostMatch struct {
	Origin                 *string `json:"origin,omitempty"`
	Name                   *string `json:"name,omitempty"`
	RouteConfigurationName *string `json:"routeConfigurationName,omitempty"`
}

// Operations of a Change. Add is for clusters, listeners and virtual hosts; the other ways to add are for filters.
const (
	Add       = "Add"
	Remove    = "Remove"
	Patch     = "Patch"
	AddFirst  = "AddFirst"
	AddLast   = "AddLast"
	AddBefore = "AddBefore"
	AddAfter  = "AddAfter"
)

// Origins of resources, as matches name them.
const (
	OriginInbound  = "inbound"
	OriginOutbound = "outbound"
	OriginGateway  = "gateway"
	OriginMetrics  = "prometheus"
	OriginOther    = "other"
	OriginPatch    = "mesh-proxy-patch"
)

// Limits of one conf.
const (
	maxModifications = 64
	maxJSONPatches   = 64
	maxValueBytes    = 64 << 10
	// maxValuesBytes limits all values together, because they are read for each proxy.
	maxValuesBytes = 128 << 10
)

// Kinds of modifications, named like the fields of a Modification.
const (
	kindCluster       = "cluster"
	kindListener      = "listener"
	kindNetworkFilter = "networkFilter"
	kindHTTPFilter    = "httpFilter"
	kindHost          = "virtualHost"
)

// change is a Modification in one form for all kinds.
type change struct {
	kind string
	*Change
	matched              bool // it has a match
	origin, name, within *string
	tags                 map[string]string
}

// changes returns the modification's parts: one, if it is valid.
func (m *Modification) changes() (out []change) {
	if c := m.Cluster; c != nil {
		one := change{kind: kindCluster, Change: &c.Change}
		if c.Match != nil {
			one.matched, one.origin, one.name = true, c.Match.Origin, c.Match.Name
		}
		out = append(out, one)
	}
	if c := m.Listener; c != nil {
		one := change{kind: kindListener, Change: &c.Change}
		if c.Match != nil {
			one.matched, one.origin, one.name, one.tags = true, c.Match.Origin, c.Match.Name, c.Match.Tags
		}
		out = append(out, one)
	}
	for i, c := range [...]*FilterChange{m.NetworkFilter, m.HTTPFilter} {
		if c == nil {
			continue
		}
		one := change{kind: [...]string{kindNetworkFilter, kindHTTPFilter}[i], Change: &c.Change}
		if at := c.Match; at != nil {
			one.matched, one.origin, one.name, one.within, one.tags = true, at.Origin, at.Name, at.ListenerName, at.ListenerTags
		}
		out = append(out, one)
	}
	if c := m.VirtualHost; c != nil {
		one := change{kind: kindHost, Change: &c.Change}
		if c.Match != nil {
			one.matched, one.origin, one.name, one.within = true, c.Match.Origin, c.Match.Name, c.Match.RouteConfigurationName
		}
		out = append(out, one)
	}
	return out
}

// operations returns the operations of a kind.
func operations(kind string) []string {
	if kind == kindNetworkFilter || kind == kindHTTPFilter {
		return []string{AddFirst, AddLast, AddBefore, AddAfter, Patch, Remove}
	}
	return []string{Add, Patch, Remove}
}

// is reports whether the text in a match, if set, is the given one.
func is(want *string, have string) bool { return want == nil || *want == have }
