package xds

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Defaults for traffic without a MeshTimeout.
const (
	defaultConnectTimeout    = 5 * time.Second
	defaultIdleTimeout       = time.Hour
	defaultRequestTimeout    = 15 * time.Second
	defaultStreamIdleTimeout = 30 * time.Minute
)

// timeouts is a merged MeshTimeout, with defaults. A nil pointer means no limit of that kind; 0 disables one.
type timeouts struct {
	connect, idle, request, streamIdle       time.Duration
	maxStream, maxConnection, requestHeaders *time.Duration
}

func (s *sender) timeoutsOf(rule *matching.ResourceRule) timeouts {
	t := timeouts{connect: defaultConnectTimeout, idle: defaultIdleTimeout, request: defaultRequestTimeout,
		streamIdle: defaultStreamIdleTimeout}
	conf := decode[resources.TimeoutConf](s, rule)
	override(&t.connect, conf.ConnectionTimeout)
	if t.connect == 0 {
		t.connect = defaultConnectTimeout // Envoy does not accept 0
	}
	override(&t.idle, conf.IdleTimeout)
	if http := conf.HTTP; http != nil {
		override(&t.request, http.RequestTimeout)
		override(&t.streamIdle, http.StreamIdleTimeout)
		t.maxStream = optional(http.MaxStreamDuration)
		t.maxConnection = optional(http.MaxConnectionDuration)
		t.requestHeaders = optional(http.RequestHeadersTimeout)
	}
	return t
}

// decode reads a merged conf. A conf that does not match its type counts as empty and adds a problem.
func decode[T any](s *sender, rule *matching.ResourceRule) (conf T) {
	if rule == nil {
		return conf
	}
	read, err := matching.ConfAs[T](rule)
	if err != nil {
		s.problem(originOf(rule), "the conf does not match its type: "+err.Error())
		return conf
	}
	return *read
}

// originOf names the policy that contributed last.
func originOf(rule *matching.ResourceRule) string {
	if n := len(rule.Origins); n > 0 {
		return rule.Origins[n-1].KRI().String()
	}
	return "policy"
}

func override(d *time.Duration, s *string) {
	if v := optional(s); v != nil {
		*d = *v
	}
}

// optional reads a duration. An invalid one, which only a peer can send, counts as absent.
func optional(s *string) *time.Duration {
	if s == nil {
		return nil
	}
	d, err := time.ParseDuration(*s)
	if err != nil || d < 0 {
		return nil
	}
	return &d
}

// period is like optional, and also treats a duration as absent if it is too short for Envoy.
func period(s *string) *time.Duration {
	if d := optional(s); d != nil && *d >= time.Millisecond {
		return d
	}
	return nil
}

func durationOf(d *time.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(*d)
}

func uint32Of(n *uint32) *wrapperspb.UInt32Value {
	if n == nil {
		return nil
	}
	return wrapperspb.UInt32(*n)
}
