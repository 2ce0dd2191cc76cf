package xds

import (
	"context"
	"maps"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// deltaRequests replace the request in responses. Only its type is read, and a proxy's own request would stay in memory
// while the watch is open.
var deltaRequests = func() (out [kinds]*cache.DeltaRequest) {
	for k, url := range typeURLs {
		out[k] = &cache.DeltaRequest{TypeUrl: url}
	}
	return out
}()

// CreateDeltaWatch answers a subscription with the differences from what the proxy has, now or as soon as there are
// any.
func (s *session) CreateDeltaWatch(req *cache.DeltaRequest, sub cache.Subscription,
	out chan cache.DeltaResponse) (func(), error) {
	k, ok := kindOf(req.GetTypeUrl())
	if !ok {
		return nil, nil
	}
	if err := s.prepare(k, sub); err != nil {
		return nil, err
	}
	first := req.GetResponseNonce() == ""
	if k.keptByName() && len(req.GetInitialResourceVersions()) == 0 {
		for _, name := range req.GetResourceNamesSubscribe() {
			delete(sub.ReturnedResources(), name) // a client that asks again has dropped what it had, possibly within one round
		}
	}
	cancel := s.await(k, func() bool {
		response := s.deltaResponseLocked(k, sub, first)
		if response == nil {
			return false
		}
		known := sub.ReturnedResources()
		out <- response // out has room for more than one response per type, and there is never more than one
		if k == kindCluster {
			for _, name := range response.DeltaDiscoveryResponse.GetRemovedResources() {
				delete(s.again, name)
			}
			s.repeatLocked(changedAmong(response.DeltaDiscoveryResponse, known))
		}
		return true
	})
	if cancel != nil {
		s.noteListening()
	}
	return cancel, nil
}

// deltaResponseLocked returns the response to send, or nil. It answers a first wildcard request even if there is
// nothing to send, because the proxy waits for that.
func (s *session) deltaResponseLocked(k kind, sub cache.Subscription, first bool) *cache.DeltaPassthroughResponse {
	want, ok := s.selectedByLocked(k, sub)
	if !ok {
		return nil
	}
	known := sub.ReturnedResources()
	s.forwardsLocked(k, sub, known)
	response := &discovery.DeltaDiscoveryResponse{TypeUrl: typeURLs[k]}
	if suspect := s.nextSuspectLocked(k, want); suspect != nil {
		response.Resources = append(response.Resources, suspect)
	} else {
		compare(k, response, want, known)
		if k == kindCluster && !s.mayRemoveLocked() {
			response.RemovedResources = nil // removed later: routes and listeners must stop referring to them first
		}
		s.addRepeatedLocked(k, response, want, known)
	}
	empty := len(response.Resources)+len(response.RemovedResources) == 0
	if empty && !(first && len(known) == 0 && sub.IsWildcard()) {
		s.causes.due[k] = nil // the proxy has what it asks for
		return nil
	}
	s.leaveLocked(k)
	next := maps.Clone(known)
	if next == nil {
		next = map[string]string{}
	}
	for _, r := range response.Resources {
		next[r.Name] = r.Version
	}
	for _, name := range response.RemovedResources {
		delete(next, name)
	}
	s.forwardsLocked(k, sub, next)
	return &cache.DeltaPassthroughResponse{DeltaRequest: deltaRequests[k], NextVersionMap: next,
		DeltaDiscoveryResponse: response}
}

// addRepeatedLocked adds endpoints that the proxy has but must receive again. Those that do not exist now follow when
// they exist again.
func (s *session) addRepeatedLocked(k kind, response *discovery.DeltaDiscoveryResponse, want set,
	known map[string]string) {
	if k != kindEndpoint || len(s.again) == 0 {
		return
	}
	for _, r := range want {
		if _, due := s.again[clusterOf(r.name)]; due && known[r.name] == r.version {
			response.Resources = append(response.Resources, r.delta)
		}
	}
	for _, r := range want {
		delete(s.again, clusterOf(r.name))
	}
}

// changedAmong returns the resources of a response that the proxy has in another version.
func changedAmong(response *discovery.DeltaDiscoveryResponse, known map[string]string) []string {
	var out []string
	for _, r := range response.Resources {
		if _, has := known[r.Name]; has {
			out = append(out, r.Name)
		}
	}
	return out
}

// compare adds to a response what the proxy lacks of want, and removes what the proxy has beyond want. known is what
// the proxy has.
func compare(k kind, response *discovery.DeltaDiscoveryResponse, want set, known map[string]string) {
	for _, r := range want {
		if known[r.name] != r.version {
			response.Resources = append(response.Resources, r.delta)
		}
	}
	if k.keptByName() {
		return
	}
	for name := range known {
		if want.get(name) == nil {
			response.RemovedResources = append(response.RemovedResources, name)
		}
	}
}

// OnDeltaStreamOpen and OnDeltaStreamClosed do nothing: the session begins and ends with the handler.
func (s *session) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }

// OnDeltaStreamClosed does nothing.
func (s *session) OnDeltaStreamClosed(int64, *corev3.Node) {}

// OnStreamDeltaRequest checks a request before it is processed.
func (s *session) OnStreamDeltaRequest(_ int64, req *discovery.DeltaDiscoveryRequest) error {
	if err := s.identify(req.GetNode()); err != nil {
		return err
	}
	req.Node = s.node
	served, err := s.accept(req.GetTypeUrl(), req.GetResourceNamesSubscribe(), req.GetInitialResourceVersions())
	if err != nil {
		return err
	}
	if !served {
		req.ResourceNamesSubscribe, req.ResourceNamesUnsubscribe, req.InitialResourceVersions = nil, nil, nil
	}
	refused := req.GetErrorDetail() != nil
	var of answer
	if k, ok := kindOf(req.GetTypeUrl()); ok {
		of.resources = s.judged(k, req.GetResponseNonce(), refused)
		if k == kindListener && len(req.GetInitialResourceVersions()) > 0 {
			s.proxy.record.brings(s.subscription)
		}
	}
	awaited := s.answered(req.GetTypeUrl(), req.GetResponseNonce(), of, req.GetErrorDetail().GetMessage(), refused)
	if k, ok := kindOf(req.GetTypeUrl()); ok && awaited && !refused {
		s.proxies.configAccepted(s.proxy, k, of.resources)
	}
	names := len(req.GetResourceNamesSubscribe()) + len(req.GetResourceNamesUnsubscribe()) +
		len(req.GetInitialResourceVersions())
	if names > 0 || !awaited || refused {
		return s.paced(1 + names/namesPerRequest)
	}
	return nil
}

// OnStreamDeltaResponse counts the response, and notes what the proxy will judge.
func (s *session) OnStreamDeltaResponse(_ int64, _ *discovery.DeltaDiscoveryRequest,
	resp *discovery.DeltaDiscoveryResponse) {
	s.sent(resp.GetTypeUrl(), resp.GetNonce())
	if k, ok := kindOf(resp.GetTypeUrl()); ok {
		s.sending(k, resp)
	}
}
