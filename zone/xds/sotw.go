package xds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// requests replace the request in responses, like deltaRequests.
var requests = func() (out [kinds]*cache.Request) {
	for k, url := range typeURLs {
		out[k] = &cache.Request{TypeUrl: url}
	}
	return out
}()

// CreateWatch answers a state-of-the-world subscription with everything that it covers, now or when any of it differs
// from what the proxy has.
func (s *session) CreateWatch(req *cache.Request, sub cache.Subscription, out chan cache.Response) (func(), error) {
	k, ok := kindOf(req.GetTypeUrl())
	if !ok {
		return nil, nil
	}
	if err := s.prepare(k, sub); err != nil {
		return nil, err
	}
	first, version := req.GetResponseNonce() == "", req.GetVersionInfo()
	cancel := s.await(k, func() bool {
		response := s.fullResponseLocked(k, sub, first, version)
		if response == nil {
			return false
		}
		out <- response // as for delta
		return true
	})
	if cancel != nil {
		s.noteListening()
	}
	return cancel, nil
}

// fullResponseLocked returns the response to send, or nil. On a first request, the version says what the proxy has.
// Later the subscription holds what was sent, which is not sent again after a refusal.
func (s *session) fullResponseLocked(k kind, sub cache.Subscription, first bool,
	version string) *cache.PassthroughResponse {
	want, ok := s.selectedByLocked(k, sub, &selection{})
	if !ok {
		return nil
	}
	next := make(map[string]string, len(want))
	for _, r := range want {
		next[r.name] = r.version
	}
	s.forwardsLocked(k, sub, next)
	now := versionOf(want)
	if first && version == now || !first && !differs(k, next, sub.ReturnedResources()) {
		s.causes.due[k] = nil // the proxy has what it asks for
		return nil
	}
	if len(want) == 0 && !sub.IsWildcard() && len(sub.ReturnedResources()) == 0 {
		return nil // named resources that do not exist yet
	}
	s.leaveLocked(k)
	response := &discovery.DiscoveryResponse{TypeUrl: typeURLs[k], VersionInfo: now}
	for _, r := range want {
		response.Resources = append(response.Resources,
			&anypb.Any{TypeUrl: r.delta.Resource.TypeUrl, Value: r.delta.Resource.Value})
	}
	return &cache.PassthroughResponse{Request: requests[k], DiscoveryResponse: response, ReturnedResources: next}
}

// differs reports whether a proxy that has known must be sent want.
func differs(k kind, want, known map[string]string) bool {
	for name, version := range want {
		if known[name] != version {
			return true
		}
	}
	return len(known) > len(want) && !k.keptByName()
}

// versionOf returns the version of a whole set, from its names and versions.
func versionOf(s set) string {
	h := sha256.New()
	for _, r := range s {
		_, _ = h.Write([]byte(r.name + "\x00" + r.version + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// OnStreamOpen and OnStreamClosed do nothing: the session begins and ends with the handler.
func (s *session) OnStreamOpen(context.Context, int64, string) error { return nil }

// OnStreamClosed does nothing.
func (s *session) OnStreamClosed(int64, *corev3.Node) {}

// OnStreamRequest checks a request before it is processed.
func (s *session) OnStreamRequest(_ int64, req *discovery.DiscoveryRequest) error {
	if s.proxy == nil && needsInline(req.GetNode()) {
		s.inliner = &inliner{}
	}
	if err := s.identify(req.GetNode()); err != nil {
		return err
	}
	req.Node = s.node
	served, err := s.accept(req.GetTypeUrl(), req.GetResourceNames(), nil)
	if err != nil {
		return err
	}
	if !served {
		req.ResourceNames = nil
	}
	if k, ok := kindOf(req.GetTypeUrl()); ok && k == kindListener && req.GetResponseNonce() == "" && req.GetVersionInfo() != "" {
		s.proxy.record.brings(s.subscription)
	}
	each := namesPerRequest
	if s.answered(req.GetTypeUrl(), req.GetResponseNonce(), answer{whole: true}, req.GetErrorDetail().GetMessage(), req.GetErrorDetail() != nil) {
		each = repeatedPerRequest // and may ask for other names
	}
	return s.paced(1 + len(req.GetResourceNames())/each)
}

// OnStreamResponse counts the response.
func (s *session) OnStreamResponse(_ context.Context, _ int64, _ *discovery.DiscoveryRequest,
	resp *discovery.DiscoveryResponse) {
	s.sent(resp.GetTypeUrl(), resp.GetNonce())
}
