package xds

import (
	"slices"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// suspects handles refusals on a delta stream. A proxy refuses a whole response for one bad resource, so the resources
// of a refused response are sent again, each alone. Guarded by session.mu.
type suspects struct {
	sent  [kinds][]unjudged            // responses without an answer, the oldest first; at most maxAwaited
	alone [kinds][]*discovery.Resource // to be sent one by one
}

// unjudged is a response without an answer.
type unjudged struct {
	nonce     string
	resources []*discovery.Resource
}

// sending notes a response that is about to be sent. A proxy that asks for more before it has answered gets another
// one.
func (s *session) sending(k kind, r *discovery.DeltaDiscoveryResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.suspects.sent[k]) == maxAwaited {
		s.suspects.sent[k] = slices.Delete(s.suspects.sent[k], 0, 1)
	}
	s.suspects.sent[k] = append(s.suspects.sent[k], unjudged{r.GetNonce(), r.GetResources()})
}

// judged applies the proxy's answer to a response, and returns that response's resources.
func (s *session) judged(k kind, nonce string, refused bool) (sent []*discovery.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.suspects.sent[k], func(one unjudged) bool { return one.nonce == nonce })
	if at < 0 {
		return nil
	}
	sent = s.suspects.sent[k][at].resources
	s.suspects.sent[k] = slices.Delete(s.suspects.sent[k], at, at+1)
	if refused && len(sent) > 1 {
		s.suspects.alone[k] = append(s.suspects.alone[k], sent...)
	}
	return sent
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
