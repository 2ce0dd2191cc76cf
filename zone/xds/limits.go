package xds

import (
	"fmt"
	"strings"

	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Limits of one stream.
const (
	maxNames        = 4096 // names in one request, versions in one request, and names subscribed to at a time
	maxName         = 1024 // bytes of a name, of a version and of a type: longer than any that the server serves
	maxVersion      = 64   // bytes of a version to keep: longer than any that the server sent
	maxUnknownTypes = 16   // types that the server does not serve
)

// Limits of one proxy over all its streams. An Envoy has one stream, and two while it restarts; a gRPC program may have
// one per service that it calls.
const (
	maxProxyStreams = 64
	maxProxyNames   = 32 << 10
)

// problemLimits is the problem of a proxy that exceeds its limits. It shows until a stream of the proxy is served
// again.
const problemLimits = "limits"

// The limits as metrics name them.
const (
	limitStreams = "streams"
	limitNames   = "names"
	limitTypes   = "types"
)

// over refuses a request over a limit, and reports it to the operator, who would not notice otherwise.
func (s *session) over(limit string, code codes.Code, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	s.proxies.metrics.over.WithLabelValues(limit).Inc()
	if p := s.proxy; p != nil {
		if p.record.setProblem(problemLimits, "over a limit: "+text) {
			s.proxies.insights.mark(p.record, soon)
		}
	}
	return status.Error(code, text)
}

// acceptNames checks the names of a request, and the versions that the proxy claims to have.
func (s *session) acceptNames(names []string, versions map[string]string) error {
	// Each has its own limit: a proxy that reconnects sends all its names, and the version of each.
	if len(names) > maxNames || len(versions) > maxNames {
		return s.over(limitNames, codes.InvalidArgument, "more than %d names in one request", maxNames)
	}
	for _, name := range names {
		if len(name) > maxName {
			return s.over(limitNames, codes.InvalidArgument, "%.64q is longer than %d bytes", name, maxName)
		}
	}
	for name, version := range versions {
		if len(name) > maxName || len(version) > maxName {
			return s.over(limitNames, codes.InvalidArgument, "%.64q, or its version, is longer than %d bytes", name, maxName)
		}
		if len(version) > maxVersion {
			versions[name] = "" // this server did not send it; the subscription would keep it
		}
	}
	return nil
}

// acceptUnserved counts the requested types that the server does not serve.
func (s *session) acceptUnserved(typeURL string) error {
	if len(typeURL) > maxName {
		return s.over(limitTypes, codes.InvalidArgument, "the type %.64q is longer than %d bytes", typeURL, maxName)
	}
	if s.unknown == nil {
		s.unknown = map[string]struct{}{}
	}
	s.unknown[strings.Clone(typeURL)] = struct{}{}
	if len(s.unknown) > maxUnknownTypes {
		return s.over(limitTypes, codes.InvalidArgument, "more than %d types that are not served here, the last %.100q",
			maxUnknownTypes, typeURL)
	}
	return nil
}

// subscribed counts the names of a kind that a stream asks for, and those that it claims to have beyond that.
func (s *session) subscribed(k kind, sub cache.Subscription) error {
	n := len(sub.SubscribedResources())
	if n > maxNames {
		return s.over(limitNames, codes.InvalidArgument, "more than %d names subscribed to", maxNames)
	}
	claimed := s.claimed(k, sub)
	if claimed > maxNames {
		return s.over(limitNames, codes.InvalidArgument, "more than %d names that it was not sent", maxNames)
	}
	n += claimed
	more := n - s.names[k]
	s.names[k] = n
	if all := s.proxy.asked.Add(int64(more)); more > 0 && all > maxProxyNames {
		return s.over(limitNames, codes.ResourceExhausted,
			"more than %d names subscribed to on all streams of the proxy", maxProxyNames)
	}
	return nil
}

// claimed returns how many names are kept only because the proxy claims to have them: it neither asks for them by name
// nor do they exist.
func (s *session) claimed(k kind, sub cache.Subscription) int {
	has, asked := len(sub.ReturnedResources()), len(sub.SubscribedResources())
	if has <= asked {
		return 0
	}
	all, _ := s.proxy.find(k)
	return max(has-max(asked, len(all)), 0)
}

// unsubscribe releases the stream's share of the limits.
func (s *session) unsubscribe() {
	for _, n := range s.names {
		s.proxy.asked.Add(-int64(n))
	}
	s.names = [kinds]int{}
}

// full reports whether a proxy has as many streams as the limit allows. x.mu is held.
func (p *proxy) full() bool { return len(p.sessions) >= maxProxyStreams }

// attached adds the stream to its proxy, unless the proxy has too many.
func (s *session) attached(id proxyID) error {
	var p *proxy
	var ok bool
	s.proxies.aside.do(func() { p, ok = s.proxies.attach(id, s) })
	if !ok {
		s.proxies.metrics.over.WithLabelValues(limitStreams).Inc()
		if p.record.setProblem(problemLimits, fmt.Sprintf("over a limit: more than %d streams", maxProxyStreams)) {
			s.proxies.insights.mark(p.record, soon)
		}
		return status.Errorf(codes.ResourceExhausted, "more than %d streams of %s", maxProxyStreams, id.Key)
	}
	s.proxy = p
	return nil
}

// openLocked returns how many streams of the proxy are open.
func (r *record) openLocked() (n int) {
	for _, s := range r.subscriptions {
		if s.ended.IsZero() {
			n++
		}
	}
	return n
}

// dropEnded keeps the newest of a proxy's ended streams, as many as the insight shows. r.mu is held.
func (r *record) dropEnded() {
	for i := 0; len(r.subscriptions) > maxSubscriptions && i < len(r.subscriptions); {
		if r.subscriptions[i].ended.IsZero() {
			i++
			continue
		}
		r.subscriptions = append(r.subscriptions[:i:i], r.subscriptions[i+1:]...)
	}
}
