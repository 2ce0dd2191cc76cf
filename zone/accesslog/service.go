package accesslog

import (
	"context"
	"errors"
	"io"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/panics"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// CollectorConfig configures a Collector.
type CollectorConfig struct {
	// Store holds the Dataplanes that may report.
	Store store.Reader
	// Admit judges the credential of a stream before anything else on it is read; nil admits all. It passes its result
	// to Identify in the context. Errors are gRPC statuses.
	Admit func(ctx context.Context) (context.Context, error)
	// Identify judges a stream and returns the Dataplane whose proxy a node claims to be. It calls end when the stream
	// must end, until release is called. The collector calls still before it believes each message. Errors are gRPC
	// statuses.
	Identify func(ctx context.Context, node *corev3.Node, end context.CancelCauseFunc) (key resources.Key,
		still func() error, release func(), err error)
	// Journal receives the observations.
	Journal *Journal
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Registerer receives the metrics; none are registered when nil.
	Registerer prometheus.Registerer
	// Panics catches panics caused by one proxy, which would end the process; nil catches nothing.
	Panics *panics.Guard
}

// Collector is the access log service. It believes a proxy only about its own Dataplane's inbounds: the log's name is
// the inbound.
type Collector struct {
	alsv3.UnimplementedAccessLogServiceServer

	cfg       CollectorConfig
	ctx       context.Context
	decisions *prometheus.CounterVec

	counters counters
}

// NewCollector returns a service whose streams end when ctx does, so that its server can drain.
func NewCollector(ctx context.Context, cfg CollectorConfig) *Collector {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Collector{cfg: cfg, ctx: ctx, decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "causeway_decisions_total",
		Help: "Requests, and TCP connections, by the policy that decided; other is a policy that the zone does not have.",
	}, []string{"protocol", "policy", "verdict"})}
	c.counters = counters{decisions: c.decisions, store: cfg.Store, known: map[string]struct{}{}, sweepAt: firstSweep}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(c.decisions)
	}
	return c
}

// Register adds the service to a gRPC server.
func (c *Collector) Register(r grpc.ServiceRegistrar) { alsv3.RegisterAccessLogServiceServer(r, c) }

// StreamAccessLogs receives the log of one inbound of one proxy.
func (c *Collector) StreamAccessLogs(stream alsv3.AccessLogService_StreamAccessLogsServer) error {
	admitted := stream.Context()
	if c.cfg.Admit != nil {
		var err error
		if admitted, err = c.cfg.Admit(admitted); err != nil {
			return err
		}
	}
	ended := make(chan error, 1)
	ctx, end := context.WithCancelCause(c.ctx)
	defer end(nil)
	// Recv cannot be interrupted; it ends with the stream, which ends when this returns.
	go func() {
		ended <- c.cfg.Panics.Do("accesslog", func() error { return c.receive(admitted, stream, end) })
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		if c.ctx.Err() == nil {
			return status.Error(codes.Unauthenticated, "the credential is no longer valid")
		}
		return status.Error(codes.Unavailable, "the zone is shutting down")
	}
}

func (c *Collector) receive(admitted context.Context, stream alsv3.AccessLogService_StreamAccessLogsServer,
	end context.CancelCauseFunc) error {
	inbound, mesh := "", ""
	still := func() error { return nil } // Identify has checked the first message
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.SendAndClose(&alsv3.StreamAccessLogsResponse{})
		}
		if err != nil {
			return err
		}
		if inbound == "" {
			key, holds, release, err := c.cfg.Identify(admitted, m.GetIdentifier().GetNode(), end)
			if err != nil {
				return err
			}
			defer release()
			mesh, still = key.Mesh, holds
			if inbound, err = c.inboundOf(key, m.GetIdentifier().GetLogName()); err != nil {
				return err
			}
		}
		if err := still(); err != nil {
			return err
		}
		for _, s := range read(inbound, m) {
			c.add(mesh, &s)
		}
	}
}

// inboundOf returns the KRI of a log's inbound.
func (c *Collector) inboundOf(key resources.Key, logName string) (string, error) {
	missing := status.Errorf(codes.NotFound, "log %.100q of %s: unknown inbound", logName, key)
	dataplane := c.cfg.Store.Snapshot().Get(key)
	if dataplane == nil {
		return "", missing
	}
	proxy, err := matching.NewProxy(dataplane)
	if err != nil {
		return "", missing
	}
	inbound := proxy.Inbound(logName)
	if inbound == nil {
		return "", missing
	}
	return resources.KRIOf(dataplane).WithSection(inbound.Section()).String(), nil
}

func (c *Collector) add(mesh string, s *seen) {
	now := c.cfg.Now()
	if s.at.After(now) || s.at.IsZero() { // a proxy's clock must not make a denial last longer
		s.at = now
	}
	s.Policy = c.counters.name(mesh, s.Policy)
	if s.ShadowPolicy != "" {
		if s.ShadowPolicy = c.counters.name(mesh, s.ShadowPolicy); s.ShadowPolicy == otherPolicies {
			s.ShadowPolicy = "" // not a policy that could be enforced
		}
	}
	c.cfg.Journal.Add(s.Observation, s.path, s.at)
	protocol, verdict := "http", "denied"
	if s.Method == "" {
		protocol = "tcp"
	}
	if s.Allowed {
		verdict = "allowed"
	}
	c.decisions.WithLabelValues(protocol, s.Policy, verdict).Inc()
}
