package proxypatch

import (
	brotlic "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/brotli/compressor/v3"
	brotlid "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/brotli/decompressor/v3"
	gzipc "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/gzip/compressor/v3"
	gzipd "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/gzip/decompressor/v3"
	zstdc "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/zstd/compressor/v3"
	zstdd "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/zstd/decompressor/v3"
	adaptivev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/adaptive_concurrency/v3"
	admissionv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/admission_control/v3"
	bandwidthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/bandwidth_limit/v3"
	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	cdnv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cdn_loop/v3"
	compressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/compressor/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	csrfv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/csrf/v3"
	decompressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/decompressor/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	bridgev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_http1_bridge/v3"
	grpcstatsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_stats/v3"
	grpcwebv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	tometadatav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/health_check/v3"
	jsonmetadatav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/json_to_metadata/v3"
	limitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/local_ratelimit/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	setmetadatav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_metadata/v3"
	connectionsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/connection_limit/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	netlimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/local_ratelimit/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	preservev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/header_formatters/preserve_case/v3"
	leastv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	maglevv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/maglev/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	ringv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"
	robinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	hostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	prioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	rawv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"

	// Types that only an unguarded patch may add. They are linked in so that such a patch can be parsed.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/grpc/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_filter_state/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/tap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/direct_response/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/echo/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/set_filter_state/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/wasm/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
)

// exposure is where in a proxy a value is.
type exposure uint8

const (
	// exposed is what remote clients reach: inbounds, and everything that is not known to be for the application only.
	exposed exposure = iota
	// ofCallers is what only the application reaches: its outbounds.
	ofCallers
)

// allowed lists the extensions that an ordinary patch may add. Those marked true change requests or their records, and
// may not follow permissions, which judged the original request.
var allowed = typeNames(map[bool][]proto.Message{
	false: {
		&brotlic.Brotli{}, &brotlid.Brotli{}, &gzipc.Gzip{}, &gzipd.Gzip{}, &zstdc.Zstd{}, &zstdd.Zstd{},
		&adaptivev3.AdaptiveConcurrency{}, &admissionv3.AdmissionControl{}, &bandwidthv3.BandwidthLimit{},
		&bufferv3.Buffer{}, &bufferv3.BufferPerRoute{}, &cdnv3.CdnLoopConfig{},
		&compressorv3.Compressor{}, &compressorv3.CompressorPerRoute{}, &corsv3.Cors{}, &corsv3.CorsPolicy{},
		&csrfv3.CsrfPolicy{}, &decompressorv3.Decompressor{}, &faultv3.HTTPFault{}, &bridgev3.Config{},
		&grpcstatsv3.FilterConfig{}, &grpcwebv3.GrpcWeb{}, &healthv3.HealthCheck{}, &limitv3.LocalRateLimit{},
		&connectionsv3.ConnectionLimit{}, &netlimitv3.LocalRateLimit{}, &preservev3.PreserveCaseFormatterConfig{},
		&leastv3.LeastRequest{}, &maglevv3.Maglev{}, &randomv3.Random{}, &ringv3.RingHash{}, &robinv3.RoundRobin{},
		&hostsv3.PreviousHostsPredicate{}, &prioritiesv3.PreviousPrioritiesConfig{}, &upstreamv3.HttpProtocolOptions{},
	},
	true: {
		&mutationv3.HeaderMutation{}, &mutationv3.HeaderMutationPerRoute{}, &tometadatav3.Config{},
		&jsonmetadatav3.JsonToMetadata{}, &setmetadatav3.Config{}, &routerv3.Router{}, &tcpv3.TcpProxy{},
		&hcmv3.HttpConnectionManager{}, &rawv3.RawBuffer{}, &tlsv3.UpstreamTlsContext{},
	},
})

func typeNames(of map[bool][]proto.Message) map[string]bool {
	out := map[string]bool{}
	for onlyOutbound, list := range of {
		for _, m := range list {
			out[string(m.ProtoReflect().Descriptor().FullName())] = onlyOutbound
		}
	}
	return out
}

// mayBring reports whether an ordinary patch may add an extension at a place.
func mayBring(name string, at exposure) bool {
	onlyOutbound, ok := allowed[name]
	return ok && (at == ofCallers || !onlyOutbound)
}
