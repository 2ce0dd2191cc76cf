package callers

import (
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// follow returns the mesh at a later snapshot of the store, made from what has changed since. It returns nil if more has
// changed than permissions, or more than the changelog tells: newMesh compares in full then.
func (m *mesh) follow(c *Config, snap store.Snapshot) *mesh {
	keys, ok := m.changedPermissions(c, snap.Revision())
	if !ok || !m.sameIdentities(c, snap) {
		return nil
	}
	next := *m
	next.revision = snap.Revision()
	var added, gone []*matching.Policy
	next.policies, next.index, added, gone = matching.PoliciesAfter(m.policies, m.index, keys, snap.Get, c.SystemNamespace)
	if len(added)+len(gone) == 0 {
		return &next
	}
	next.replaceInbounds(slices.Concat(added, gone))
	return &next
}

// changedPermissions returns the keys of the permissions that changed up to a revision. ok is false if something else
// changed on which a mesh depends, or if the changelog does not reach back.
func (m *mesh) changedPermissions(c *Config, until uint64) (keys map[resources.Key]bool, ok bool) {
	commits, ok := c.Store.Changes(m.revision)
	if !ok {
		return nil, false
	}
	keys = map[resources.Key]bool{}
	for _, commit := range commits {
		if commit.Revision > until {
			break
		}
		for _, change := range commit.Changes {
			key := change.Key()
			switch {
			case key.Type == resources.TypeMesh && key.Name == m.name:
				return nil, false
			case key.Mesh != m.name:
			case key.Type == resources.TypeMeshTrafficPermission:
				keys[key] = true
			case readsInFull(key.Type):
				return nil, false
			}
		}
	}
	return keys, true
}

// readsInFull reports whether a mesh depends on the resources of a type, besides permissions.
func readsInFull(t resources.Type) bool {
	switch t {
	case resources.TypeDataplane, resources.TypeMeshService, resources.TypeMeshGateway, resources.TypeMeshIdentity,
		resources.TypeTrafficTarget, resources.TypeHTTPRouteGroup:
		return true
	}
	return false
}

// sameIdentities reports whether the proxies have the identities that they had. In a zone these depend on what is ready,
// too, which is in no changelog.
func (m *mesh) sameIdentities(c *Config, snap store.Snapshot) bool {
	same := true
	if c.Assignments != nil {
		m.eachIdentity(c, snap, func(p *proxy, id string) { same = same && p.identity == id })
	}
	return same
}

// replaceInbounds replaces, in the copy of a mesh, the inbounds that one of the changed policies selects.
func (m *mesh) replaceInbounds(changed []*matching.Policy) {
	replaced := map[*inbound]*inbound{}
	proxies := map[*proxy]*proxy{}
	for _, p := range m.proxies {
		inbounds := stillRight(p, p.inbounds, changed)
		for i, in := range inbounds {
			if in == p.inbounds[i] {
				continue
			}
			replaced[p.inbounds[i]] = in
			if proxies[p] == nil {
				fresh := *p
				fresh.inbounds = inbounds
				proxies[p] = &fresh
			}
		}
	}
	if len(replaced) == 0 {
		return
	}
	m.proxies, m.byKey, m.byHome = slices.Clone(m.proxies), maps.Clone(m.byKey), maps.Clone(m.byHome)
	for i, p := range m.proxies {
		fresh := proxies[p]
		if fresh == nil {
			continue
		}
		m.proxies[i], m.byKey[p.resource.Key] = fresh, fresh
		at := home{p.parsed.Zone, p.parsed.Namespace}
		m.byHome[at] = slices.Clone(m.byHome[at])
		m.byHome[at][slices.Index(m.byHome[at], p)] = fresh
	}
	m.rows = slices.Clone(m.rows)
	for i := range m.rows {
		r := &m.rows[i]
		for k, in := range r.inbounds {
			if fresh := replaced[in]; fresh != nil {
				r.inbounds = slices.Clone(r.inbounds)
				r.inbounds[k] = fresh
			}
		}
	}
}
