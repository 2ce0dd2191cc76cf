package xds

import "slices"

// waitsFor says after what a kind comes: listeners and routes that name a cluster which the proxy does not have yet, or has without
// endpoints, would fail requests.
var waitsFor = [kinds][]kind{
	kindListener: {kindCluster},
	kindRoute:    {kindCluster, kindEndpoint, kindSecret},
}

// mustWaitLocked reports whether something would arrive before what it refers to: the stream has not yet answered what it was
// told of that last, and there is newer. A client that asks for clusters by name learns the names from what refers to them.
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

// lacksLocked reports whether the stream is yet to be told of a resource. Endpoints and secrets only have to have been there once; a proxy
// that refused a cluster does not ask for those of it: nothing waits for them.
func (s *session) lacksLocked(k kind) bool {
	if k == kindCluster {
		want, _ := s.proxy.find(k)
		return slices.ContainsFunc(want, func(r *resource) bool {
			told := s.told[k].get(r.name)
			return told == nil || told.version != r.version
		})
	}
	state := s.proxy.state.Load()
	if state == nil || s.suspects.clusters {
		return false
	}
	return slices.ContainsFunc(state.sets[k], func(r *resource) bool { return s.told[k].get(r.name) == nil })
}

// mayRemoveLocked reports whether clusters may be taken away: nothing that the proxy has refers to them any more.
func (s *session) mayRemoveLocked() bool {
	for _, k := range []kind{kindListener, kindRoute} {
		if !s.asked[k] {
			continue
		}
		want, _ := s.proxy.find(k)
		for _, told := range s.told[k] {
			if r := want.get(told.name); r == nil && k == kindListener || r != nil && r.version != told.version {
				return false
			}
		}
	}
	return true
}

// wakeWaitingLocked lets those answer that may have waited for a kind.
func (s *session) wakeWaitingLocked(k kind) {
	switch k {
	case kindCluster, kindEndpoint, kindSecret:
		s.wakeLocked(kindListener)
		s.wakeLocked(kindRoute)
	case kindListener, kindRoute:
		s.wakeLocked(kindCluster)
	}
}
