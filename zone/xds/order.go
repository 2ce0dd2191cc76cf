package xds

import "slices"

// waitsFor lists the kinds that each kind comes after. Listeners and routes that name a cluster which the proxy does
// not have yet, or has without endpoints, would fail requests.
var waitsFor = [kinds][]kind{
	kindListener: {kindCluster},
	kindRoute:    {kindCluster, kindEndpoint, kindSecret},
}

// mustWaitLocked reports whether a response would arrive before what it refers to: the stream has not answered the last
// response of a kind that it waits for, and there is a newer state of it. A client that asks for clusters by name
// learns the names from what refers to them.
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

// lacksLocked reports whether the stream has yet to receive a resource. Endpoints and secrets only need to have been
// sent once. A proxy that refused a cluster does not ask for its endpoints or secrets: nothing waits for them.
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
	return slices.ContainsFunc(state.served(k), func(r *resource) bool { return s.told[k].get(r.name) == nil })
}

// mayRemoveLocked reports whether clusters may be removed: nothing that the proxy has refers to them any more.
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

// wakeWaitingLocked lets kinds respond that may have waited for this one.
func (s *session) wakeWaitingLocked(k kind) {
	switch k {
	case kindCluster, kindEndpoint, kindSecret:
		s.wakeLocked(kindListener)
		s.wakeLocked(kindRoute)
	case kindListener, kindRoute:
		s.wakeLocked(kindCluster)
	}
}
