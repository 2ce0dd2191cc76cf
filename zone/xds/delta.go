package xds

import (
	"context"

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
	var last selection
	cancel := s.await(k, func() bool {
		response, changed := s.deltaResponseLocked(k, sub, first, &last)
		if response == nil {
			return false
		}
		out <- response // out has room for more than one response per type, and there is never more than one
		if k == kindCluster {
			for _, name := range response.DeltaDiscoveryResponse.GetRemovedResources() {
				delete(s.again, name)
			}
			s.repeatLocked(changed)
		}
		return true
	})
	if cancel != nil {
		s.noteListening()
	}
	return cancel, nil
}

// deltaResponseLocked returns the response to send, or nil, and which of its clusters the proxy has in another version.
// It answers a first wildcard request even if there is nothing to send, because the proxy waits for that. What the proxy
// has, according to the subscription, then includes the response.
func (s *session) deltaResponseLocked(k kind, sub cache.Subscription, first bool,
	last *selection) (response *cache.DeltaPassthroughResponse, changed []string) {
	want, ok := s.selectedByLocked(k, sub, last)
	if !ok {
		return nil, nil
	}
	if last.nothing && len(s.suspects.alone[k]) == 0 && (k != kindEndpoint || len(s.again) == 0) {
		s.causes.due[k] = nil
		return nil, nil
	}
	known := sub.ReturnedResources()
	s.forwardsLocked(k, sub, known)
	var send []*discovery.Resource
	var remove []string
	kept := false // what it must not lose yet
	if suspect := s.nextSuspectLocked(k, want); suspect != nil {
		send = append(send, suspect)
	} else {
		send, remove = compare(k, want, known)
		if k == kindCluster && len(remove) > 0 && !s.mayRemoveLocked() {
			remove, kept = nil, true // removed later: routes and listeners must stop referring to them first
		}
		send = s.addRepeatedLocked(k, send, want, known)
	}
	if empty := len(send)+len(remove) == 0; empty && !(first && len(known) == 0 && sub.IsWildcard()) {
		s.causes.due[k] = nil // the proxy has what it asks for
		last.nothing = !kept
		return nil, nil
	}
	s.leaveLocked(k)
	if k == kindCluster {
		changed = changedAmong(send, known)
	}
	if known == nil {
		known = map[string]string{}
	}
	for _, r := range send {
		known[r.Name] = r.Version
	}
	for _, name := range remove {
		delete(known, name)
	}
	s.forwardsLocked(k, sub, known)
	return &cache.DeltaPassthroughResponse{DeltaRequest: deltaRequests[k], NextVersionMap: known,
		DeltaDiscoveryResponse: &discovery.DeltaDiscoveryResponse{TypeUrl: typeURLs[k], Resources: send, RemovedResources: remove}}, changed
}

// addRepeatedLocked adds endpoints that the proxy has but must receive again. Those that do not exist now follow when
// they exist again.
func (s *session) addRepeatedLocked(k kind, send []*discovery.Resource, want set, known map[string]string) []*discovery.Resource {
	if k != kindEndpoint || len(s.again) == 0 {
		return send
	}
	for _, r := range want {
		if _, due := s.again[clusterOf(r.name)]; due && known[r.name] == r.version {
			send = append(send, r.delta)
		}
	}
	for _, r := range want {
		delete(s.again, clusterOf(r.name))
	}
	return send
}

// changedAmong returns those of some resources that the proxy has in another version.
func changedAmong(some []*discovery.Resource, known map[string]string) []string {
	var out []string
	for _, r := range some {
		if _, has := known[r.Name]; has {
			out = append(out, r.Name)
		}
	}
	return out
}

// compare returns what the proxy lacks of want, and the names that it has beyond want. known is what the proxy has.
func compare(k kind, want set, known map[string]string) (send []*discovery.Resource, remove []string) {
	has := 0
	for _, r := range want {
		version, there := known[r.name]
		if there {
			has++
		}
		if version != r.version {
			send = append(send, r.delta)
		}
	}
	if k.keptByName() || has == len(known) {
		return send, nil
	}
	for name := range known {
		if want.get(name) == nil {
			remove = append(remove, name)
		}
	}
	return send, remove
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
