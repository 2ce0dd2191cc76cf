package xds

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	sinkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/health_check/event_sinks/file/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// healthCheck makes the proxy check a backend's endpoints, as a MeshHealthCheck asks. Values that Envoy would refuse,
// which only a peer can send, keep their defaults.
func (s *sender) healthCheck(c *clusterv3.Cluster, b *backend) {
	rule := s.health.For(b.key())
	if rule == nil {
		return
	}
	conf := decode[resources.HealthCheckConf](s, rule)
	check := commonHealthCheck(&conf)
	check.Timeout = s.shortWait("timeout", check.Timeout, rule)
	check.InitialJitter = s.shortWait("initialJitter", check.InitialJitter, rule)
	if !s.healthChecker(check, &conf, b, rule) {
		return
	}
	s.logHealth(check, &conf, rule)
	c.HealthChecks = []*corev3.HealthCheck{check}
	if panics, ok := percentOf(conf.HealthyPanicThreshold); ok && panics <= 100 {
		lbConfig(c).HealthyPanicThreshold = &typev3.Percent{Value: panics}
	}
	if conf.FailTrafficOnPanic != nil && *conf.FailTrafficOnPanic {
		lbConfig(c).LocalityConfigSpecifier = &clusterv3.Cluster_CommonLbConfig_ZoneAwareLbConfig_{
			ZoneAwareLbConfig: &clusterv3.Cluster_CommonLbConfig_ZoneAwareLbConfig{FailTrafficOnPanic: true},
		}
	}
}

// logHealth makes the proxy log the results of its checks. Envoy refuses a whole cluster whose log cannot be opened, so
// such a log is left out.
func (s *sender) logHealth(check *corev3.HealthCheck, conf *resources.HealthCheckConf, rule *matching.ResourceRule) {
	always := conf.AlwaysLogHealthCheckFailures != nil && *conf.AlwaysLogHealthCheckFailures
	why := ""
	switch {
	case conf.EventLogPath == nil && always:
		s.problem(originOf(rule), "alwaysLogHealthCheckFailures: has no effect without an eventLogPath")
		return
	case conf.EventLogPath == nil:
		return
	case !resources.LogPath(*conf.EventLogPath):
		why = "want the absolute path of a file, or /dev/stdout"
	case conf.WritesFile() && slices.ContainsFunc(rule.Origins, ofProducer):
		why = errFileOfOthers.Error()
	case s.target.logFiles != nil:
		why = s.target.logFiles.use(*conf.EventLogPath)
	}
	if why != "" {
		s.problem(originOf(rule), "eventLogPath: "+why)
		return
	}
	sink, err := pack(&sinkv3.HealthCheckEventFileSink{EventLogPath: *conf.EventLogPath})
	if err != nil {
		s.problem(originOf(rule), "eventLogPath: "+err.Error())
		return
	}
	check.EventLogger = []*corev3.TypedExtensionConfig{{Name: "envoy.health_check.event_sinks.file", TypedConfig: sink}}
	check.AlwaysLogHealthCheckFailures = always
}

// shortWait limits the delay of a first check. Only a peer can send a longer one.
func (s *sender) shortWait(field string, d *durationpb.Duration, rule *matching.ResourceRule) *durationpb.Duration {
	if d.AsDuration() <= resources.MostHealthWait {
		return d
	}
	s.problem(rule.Origins[len(rule.Origins)-1].KRI().String(),
		field+": the proxy waits "+resources.MostHealthWait.String()+", the maximum")
	return durationpb.New(resources.MostHealthWait)
}

func lbConfig(c *clusterv3.Cluster) *clusterv3.Cluster_CommonLbConfig {
	if c.CommonLbConfig == nil {
		c.CommonLbConfig = &clusterv3.Cluster_CommonLbConfig{}
	}
	return c.CommonLbConfig
}

func commonHealthCheck(conf *resources.HealthCheckConf) *corev3.HealthCheck {
	positive := func(text *string, otherwise, least time.Duration) *durationpb.Duration {
		if d := period(text); d != nil {
			return durationpb.New(max(*d, least))
		}
		if otherwise == 0 {
			return nil
		}
		return durationpb.New(otherwise)
	}
	threshold := func(n *uint32, otherwise uint32) *wrapperspb.UInt32Value {
		if n == nil || *n == 0 {
			return wrapperspb.UInt32(otherwise)
		}
		return wrapperspb.UInt32(*n)
	}
	out := &corev3.HealthCheck{
		Interval:           positive(conf.Interval, resources.HealthCheckInterval, resources.LeastHealthInterval),
		Timeout:            positive(conf.Timeout, resources.HealthCheckTimeout, 0),
		UnhealthyThreshold: threshold(conf.UnhealthyThreshold, resources.HealthCheckUnhealthyThreshold),
		HealthyThreshold:   threshold(conf.HealthyThreshold, resources.HealthCheckHealthyThreshold),
		InitialJitter:      positive(conf.InitialJitter, 0, 0), IntervalJitter: positive(conf.IntervalJitter, 0, 0),
		NoTrafficInterval: positive(conf.NoTrafficInterval, 0, resources.LeastHealthInterval),
	}
	if n := conf.IntervalJitterPercent; n != nil {
		out.IntervalJitterPercent = *n
	}
	if r := conf.ReuseConnection; r != nil {
		out.ReuseConnection = wrapperspb.Bool(*r)
	}
	return out
}

// healthChecker sets how the proxy checks the backend: in the backend's protocol if the conf has a part for it, or by a
// connection. It reports whether the proxy checks it at all.
func (s *sender) healthChecker(check *corev3.HealthCheck, conf *resources.HealthCheckConf, b *backend,
	rule *matching.ResourceRule) bool {
	off := func(disabled *bool) bool { return disabled != nil && *disabled }
	switch {
	case b.protocol == "grpc" && conf.GRPC != nil && !off(conf.GRPC.Disabled):
		check.HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{
			ServiceName: healthText(conf.GRPC.ServiceName), Authority: healthText(conf.GRPC.Authority),
		}}
		return true
	case b.protocol != "grpc" && b.http() && conf.HTTP != nil && !off(conf.HTTP.Disabled):
		check.HealthChecker = httpHealthChecker(conf.HTTP, b)
		return true
	}
	if conf.TCP == nil && (conf.HTTP != nil || conf.GRPC != nil) {
		if !off(disabledOf(conf)) {
			s.problem(originOf(rule),
				"the health of "+b.name+" is not checked: the conf has no part for its protocol, and no tcp")
		}
		return false
	}
	if conf.TCP != nil && off(conf.TCP.Disabled) {
		return false
	}
	check.HealthChecker = tcpHealthChecker(conf.TCP)
	return true
}

// disabledOf returns the conf's disabled setting for requests; nil if it has none.
func disabledOf(conf *resources.HealthCheckConf) *bool {
	if conf.HTTP != nil {
		return conf.HTTP.Disabled
	}
	return conf.GRPC.Disabled
}

func httpHealthChecker(h *resources.HTTPHealthCheck, b *backend) *corev3.HealthCheck_HttpHealthCheck_ {
	out := &corev3.HealthCheck_HttpHealthCheck{Host: b.service.Resource.DisplayName(), Path: "/"}
	if h.Path != nil && resources.HealthPath(*h.Path) {
		out.Path = *h.Path
	}
	if b.http2() {
		out.CodecClientType = typev3.CodecClientType_HTTP2
	}
	for _, status := range h.ExpectedStatuses {
		if status >= 100 && status <= 599 {
			out.ExpectedStatuses = append(out.ExpectedStatuses, &typev3.Int64Range{Start: int64(status), End: int64(status) + 1})
		}
	}
	out.RequestHeadersToAdd = headerOptions(h.RequestHeadersToAdd)
	return &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: out}
}

func tcpHealthChecker(c *resources.TCPHealthCheck) *corev3.HealthCheck_TcpHealthCheck_ {
	out := &corev3.HealthCheck_TcpHealthCheck{}
	if c == nil {
		return &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: out}
	}
	payload := func(text string) *corev3.HealthCheck_Payload {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) == 0 {
			return nil
		}
		return &corev3.HealthCheck_Payload{Payload: &corev3.HealthCheck_Payload_Text{Text: hex.EncodeToString(raw)}}
	}
	out.Send = payload(textOf(c.Send))
	for _, text := range c.Receive {
		if p := payload(text); p != nil {
			out.Receive = append(out.Receive, p)
		}
	}
	return &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: out}
}

func healthText(s *string) string {
	if s == nil || !resources.HealthText(*s) {
		return ""
	}
	return *s
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
