package xds

import (
	"maps"
	"slices"
	"strings"

	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// waitsFor lists the kinds that each kind waits for. Listeners and routes would fail requests if they named a cluster
// that the proxy lacks, or has without endpoints or secrets. Forwarders wait as routes do (selectedByLocked).
var waitsFor = [kinds][]kind{
	kindListener: {kindCluster},
	kindRoute:    {kindCluster, kindEndpoint, kindSecret},
}

// mustWaitLocked reports whether a response would arrive before what it refers to: the stream has not answered the last
// response of a kind that it waits for, and that kind has a newer state. A client that asks for clusters by name learns
// the names from what refers to them.
func (s *session) mustWaitLocked(k kind) bool {
	if !s.ordered {
		return false
	}
	for _, before := range waitsFor[k] {
		if s.asked[before] && s.lacksLocked(before) {
			return true
		}
	}
	return false
}

// lacksLocked reports whether the stream has yet to receive a resource. Clusters count once the proxy has answered.
// Endpoints and secrets count once they were sent: the proxy asks for them by what it has, and nothing waits for those
// that it will not ask for. So no wait outlasts the proxy's answer and request.
func (s *session) lacksLocked(k kind) bool {
	if k == kindCluster {
		want, _ := s.proxy.find(k)
		return slices.ContainsFunc(want, func(r *resource) bool {
			one := s.lastSent[k].get(r.name)
			return one == nil || one.version != r.version
		})
	}
	state := s.proxy.state.Load()
	if state == nil || s.refused[kindCluster] || k == kindSecret && s.refused[kindListener] {
		return false // a proxy does not ask for what belongs to a refused resource
	}
	return slices.ContainsFunc(state.served(k), func(r *resource) bool {
		return s.lastSent[k].get(r.name) == nil && state.refersTo(k, r.name)
	})
}

// refersTo reports whether a proxy with all clusters and listeners asks for the endpoints or secret of a name. A
// patched cluster or listener may ask for other names, or for none.
func (s *state) refersTo(k kind, name string) bool {
	if s.patched.sets == nil {
		return true
	}
	if k == kindSecret && strings.HasPrefix(name, gatewayCertificates) {
		return len(s.patched.by[kindListener]) == 0 && len(s.served(kindListener)) == len(s.sets[kindListener])
	}
	cluster := strings.TrimPrefix(name, identitiesOf(""))
	if k == kindEndpoint {
		cluster = clusterOf(name)
	}
	return s.served(kindCluster).get(cluster) != nil && len(s.patched.by[kindCluster][cluster]) == 0
}

// refuses notes that the proxy refused a response.
func (s *session) refuses(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[k] = true
}

// mayRemoveLocked reports whether clusters may be removed: nothing that the proxy has still refers to them.
func (s *session) mayRemoveLocked() bool {
	for _, k := range []kind{kindListener, kindRoute} {
		if !s.asked[k] {
			continue
		}
		want, _ := s.proxy.find(k)
		for _, one := range s.lastSent[k] {
			if r := want.get(one.name); r == nil && k == kindListener || r != nil && r.version != one.version {
				return false
			}
		}
	}
	filters, _ := s.proxy.find(kindExtension)
	for name, version := range s.forwarders {
		if r := filters.get(name); r != nil && r.version != version {
			return false // a TCP proxy names where it sends
		}
	}
	return true
}

// forwardsLocked notes which forwarders the stream has, of those that it asks for.
func (s *session) forwardsLocked(k kind, sub cache.Subscription, versions map[string]string) {
	if k != kindExtension {
		return
	}
	names := sub.SubscribedResources()
	maps.DeleteFunc(s.forwarders, func(name, _ string) bool { _, asked := names[name]; return !asked })
	for name := range names {
		version, has := versions[name]
		if !has || !isForwarder(name) {
			continue
		}
		if s.forwarders == nil {
			s.forwarders = map[string]string{}
		}
		s.forwarders[name] = version
	}
}

// wakeLocked wakes a kind, and reports whether it has woken those that may have waited for it.
func (s *session) wakeLocked(k kind) (woken bool) {
	if w := s.watches[k]; w != nil {
		s.watches[k] = nil // the consequences of the response may wake the kind again, and it responds once
		before := s.lastSent[k]
		done := w.respond()
		if !done {
			s.watches[k] = w
		}
		if done || !before.equal(s.lastSent[k]) { // the proxy may have a state that was sent anew
			s.wakeWaitingLocked(k)
			woken = true
		}
	}
	if k == kindExtension && s.inliner != nil {
		s.wakeLocked(kindListener)
	}
	return woken
}

// wakeWaitingLocked wakes kinds that may have waited for this one.
func (s *session) wakeWaitingLocked(k kind) {
	switch k {
	case kindCluster, kindEndpoint, kindSecret:
		s.wakeLocked(kindExtension)
		s.wakeLocked(kindListener)
		s.wakeLocked(kindRoute)
	case kindListener:
		s.wakeLocked(kindExtension)
		s.wakeLocked(kindRoute)
		s.wakeLocked(kindCluster)
	case kindRoute, kindExtension:
		s.wakeLocked(kindCluster)
	}
}
