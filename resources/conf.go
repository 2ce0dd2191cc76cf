package resources

import (
	"reflect"

	"github.com/causeway-mesh/causeway/resources/proxypatch"
)

// confKey names the place of a conf: the `default` of `to`, of `from` or of `rules` ("rule"), or the `rules` of a
// route.
type confKey struct {
	policy Type
	place  string
}

// confTypes lists the confs whose fields are checked when a user writes them. The confs of other policies are opaque:
// any JSON object.
var confTypes = map[confKey]reflect.Type{
	{TypeMeshTrafficPermission, "rule"}:   reflect.TypeFor[PermissionConf](),
	{TypeMeshTrafficPermission, "from"}:   reflect.TypeFor[PermissionAction](),
	{TypeMeshTimeout, "to"}:               reflect.TypeFor[TimeoutConf](),
	{TypeMeshTimeout, "from"}:             reflect.TypeFor[TimeoutConf](),
	{TypeMeshTimeout, "rule"}:             reflect.TypeFor[TimeoutConf](),
	{TypeMeshRateLimit, "from"}:           reflect.TypeFor[RateLimitConf](),
	{TypeMeshRateLimit, "rule"}:           reflect.TypeFor[RateLimitConf](),
	{TypeMeshFaultInjection, "from"}:      reflect.TypeFor[FaultInjectionConf](),
	{TypeMeshFaultInjection, "rule"}:      reflect.TypeFor[FaultInjectionConf](),
	{TypeMeshAccessLog, "to"}:             reflect.TypeFor[AccessLogConf](),
	{TypeMeshAccessLog, "from"}:           reflect.TypeFor[AccessLogConf](),
	{TypeMeshAccessLog, "rule"}:           reflect.TypeFor[AccessLogConf](),
	{TypeMeshMetric, "rule"}:              reflect.TypeFor[MetricConf](),
	{TypeMeshLoadBalancingStrategy, "to"}: reflect.TypeFor[BalancingConf](),
	{TypeMeshHealthCheck, "to"}:           reflect.TypeFor[HealthCheckConf](),
	{TypeMeshCircuitBreaker, "to"}:        reflect.TypeFor[BreakerConf](),
	{TypeMeshCircuitBreaker, "from"}:      reflect.TypeFor[BreakerConf](),
	{TypeMeshCircuitBreaker, "rule"}:      reflect.TypeFor[BreakerConf](),
	{TypeMeshRetry, "to"}:                 reflect.TypeFor[RetryConf](),
	{TypeMeshTrace, "rule"}:               reflect.TypeFor[TraceConf](),
	{TypeMeshProxyPatch, "rule"}:          reflect.TypeFor[proxypatch.Conf](),
	{TypeMeshPassthrough, "rule"}:         reflect.TypeFor[PassthroughConf](),
	{TypeMeshTLS, "from"}:                 reflect.TypeFor[TLSConf](),
	{TypeMeshTLS, "rule"}:                 reflect.TypeFor[TLSConf](),
	{TypeMeshHTTPRoute, "routes"}:         reflect.TypeFor[[]HTTPRouteRule](),
	{TypeMeshTCPRoute, "routes"}:          reflect.TypeFor[[]TCPRouteRule](),
}

// TimeoutConf is the `default` of a MeshTimeout, in Kuma's format. Durations are Go duration strings.
type TimeoutConf struct {
	ConnectionTimeout *string      `json:"connectionTimeout,omitempty"`
	IdleTimeout       *string      `json:"idleTimeout,omitempty"`
	HTTP              *HTTPTimeout `json:"http,omitempty"`
}

// HTTPTimeout is the part of a TimeoutConf for HTTP traffic.
type HTTPTimeout struct {
	RequestTimeout        *string `json:"requestTimeout,omitempty"`
	StreamIdleTimeout     *string `json:"streamIdleTimeout,omitempty"`
	MaxStreamDuration     *string `json:"maxStreamDuration,omitempty"`
	MaxConnectionDuration *string `json:"maxConnectionDuration,omitempty"`
	RequestHeadersTimeout *string `json:"requestHeadersTimeout,omitempty"`
}
