package xds

import discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

// suspects handles refusals on a delta stream. A proxy refuses a whole response for one bad resource, so the resources
// of a refused response are sent once more, each alone. Guarded by session.mu.
type suspects struct {
	nonce [kinds]string                // of the last response
	sent  [kinds][]*discovery.Resource // of the last response, until it is answered
	alone [kinds][]*discovery.Resource // to be sent one by one
	// clusters means that the proxy has refused a cluster at some time.
	clusters bool
}

// sending notes a response that is about to leave.
func (s *session) sending(k kind, r *discovery.DeltaDiscoveryResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspects.nonce[k], s.suspects.sent[k] = r.GetNonce(), r.GetResources()
}

// judged applies the proxy's answer to a response.
func (s *session) judged(k kind, nonce string, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if nonce != s.suspects.nonce[k] {
		return
	}
	s.suspects.clusters = s.suspects.clusters || refused && k == kindCluster
	if sent := s.suspects.sent[k]; refused && len(sent) > 1 {
		s.suspects.alone[k] = append(s.suspects.alone[k], sent...)
	}
	s.suspects.sent[k] = nil
}

// nextSuspectLocked returns the next resource to send alone, or nil. It leaves resources that changed meanwhile to the
// ordinary comparison.
func (s *session) nextSuspectLocked(k kind, want set) *discovery.Resource {
	for len(s.suspects.alone[k]) > 0 {
		r := s.suspects.alone[k][0]
		s.suspects.alone[k] = s.suspects.alone[k][1:]
		if now := want.get(r.Name); now != nil && now.version == r.Version {
			return r
		}
	}
	return nil
}
