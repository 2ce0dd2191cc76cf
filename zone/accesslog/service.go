package accesslog

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// CollectorConfig is what a Collector is made of.
type CollectorConfig struct {
	// Store knows the Dataplanes that may report.
	Store store.Reader
	// Identify judges a stream and says which Dataplane a node is the proxy of. It calls end when the stream is to end, until
	// release is called. Errors are gRPC statuses.
	Identify func(ctx context.Context, node *corev3.Node, end context.CancelCauseFunc) (key resources.Key, release func(), err error)
	// Journal takes what is reported.
	Journal *Journal
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Registerer takes the metrics; none are registered when nil.
	Registerer prometheus.Registerer
}

// Collector is the access log service. A proxy is believed about its own Dataplane's inbounds only: the log's name is the inbound.
type Collector struct {
	alsv3.UnimplementedAccessLogServiceServer

	cfg       CollectorConfig
	ctx       context.Context
	decisions *prometheus.CounterVec

	mu       sync.Mutex
	policies map[string]struct{} // guarded by mu: those that have a counter
}

// maxPolicies is how many policies have counters of their own; the others share one named otherPolicies.
const (
	maxPolicies   = 2048
	otherPolicies = "other"
)

// NewCollector returns a service whose streams end when ctx does, so that its server can drain.
func NewCollector(ctx context.Context, cfg CollectorConfig) *Collector {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Collector{cfg: cfg, ctx: ctx, policies: map[string]struct{}{}, decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "causeway_decisions_total", Help: "Requests, and connections on TCP, by who decided.",
	}, []string{"protocol", "policy", "verdict"})}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(c.decisions)
	}
	return c
}

// Register adds the service to a gRPC server.
func (c *Collector) Register(r grpc.ServiceRegistrar) { alsv3.RegisterAccessLogServiceServer(r, c) }

// StreamAccessLogs takes the log of one inbound of one proxy.
func (c *Collector) StreamAccessLogs(stream alsv3.AccessLogService_StreamAccessLogsServer) error {
	ended := make(chan error, 1)
	ctx, end := context.WithCancelCause(c.ctx)
	defer end(nil)
	// Recv cannot be interrupted; it ends with the stream, which ends when this returns.
	go func() { ended <- c.receive(stream, end) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		if c.ctx.Err() == nil {
			return status.Error(codes.Unauthenticated, "the credential is no longer good")
		}
		return status.Error(codes.Unavailable, "the zone is shutting down")
	}
}

func (c *Collector) receive(stream alsv3.AccessLogService_StreamAccessLogsServer, end context.CancelCauseFunc) error {
	inbound := ""
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&alsv3.StreamAccessLogsResponse{})
		}
		if err != nil {
			return err
		}
		if inbound == "" {
			key, release, err := c.cfg.Identify(stream.Context(), m.GetIdentifier().GetNode(), end)
			if err != nil {
				return err
			}
			defer release()
			if inbound, err = c.inboundOf(key, m.GetIdentifier().GetLogName()); err != nil {
				return err
			}
		}
		for _, s := range read(inbound, m) {
			c.add(&s)
		}
	}
}

// inboundOf is the KRI of the inbound that a log is about.
func (c *Collector) inboundOf(key resources.Key, logName string) (string, error) {
	dataplane := c.cfg.Store.Snapshot().Get(key)
	if dataplane == nil || logName == "" {
		return "", status.Errorf(codes.NotFound, "log %.100q of %s: there is no such inbound", logName, key)
	}
	return resources.KRIOf(dataplane).WithSection(cut(logName)).String(), nil
}

func (c *Collector) add(s *seen) {
	now := c.cfg.Now()
	if s.at.After(now) { // a proxy's clock must not make a denial last longer
		s.at = now
	}
	c.cfg.Journal.Add(s.Observation, s.at)
	protocol, verdict := "http", "denied"
	if s.Method == "" {
		protocol = "tcp"
	}
	if s.Allowed {
		verdict = "allowed"
	}
	c.decisions.WithLabelValues(protocol, c.counted(s.Policy), verdict).Inc()
}

func (c *Collector) counted(policy string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.policies[policy]; !there {
		if len(c.policies) == maxPolicies {
			return otherPolicies
		}
		c.policies[policy] = struct{}{}
	}
	return policy
}
