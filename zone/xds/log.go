package xds

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/grpc/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/accesslog"
)

// ServerCluster is the cluster in proxies' bootstrap by which they reach this server.
const ServerCluster = "causeway_zone"

// setLogs gives the inbounds of a Dataplane their access logs.
func (t *target) setLogs(sinks []accesslog.Sink) error {
	for i := range t.inbounds {
		in := &t.inbounds[i]
		in.logs = nil
		for _, sink := range sinks {
			log, err := newLog(in, sink, resources.KRIOf(t.dataplane).WithSection(in.section))
			if err != nil {
				return err
			}
			in.logs = append(in.logs, log)
		}
	}
	return nil
}

func newLog(in *inbound, sink accesslog.Sink, kri resources.KRI) (*accesslogv3.AccessLog, error) {
	var name string
	var config message
	lines := logLines(in, kri)
	switch {
	case sink == accesslog.Stdout:
		name, config = "envoy.access_loggers.stdout", &streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: lines}}
	case sink != accesslog.Service:
		name, config = "envoy.access_loggers.file", &filev3.FileAccessLog{Path: string(sink), AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: lines}}
	case in.http():
		name, config = "envoy.access_loggers.http_grpc", &alsv3.HttpGrpcAccessLogConfig{CommonConfig: logService(in)}
	default:
		name, config = "envoy.access_loggers.tcp_grpc", &alsv3.TcpGrpcAccessLogConfig{CommonConfig: logService(in)}
	}
	packed, err := pack(config)
	return &accesslogv3.AccessLog{Name: name, ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: packed}}, err
}

// logService sends the log to this server, under the inbound's name.
func logService(in *inbound) *alsv3.CommonGrpcAccessLogConfig {
	return &alsv3.CommonGrpcAccessLogConfig{
		LogName:             in.section,
		TransportApiVersion: corev3.ApiVersion_V3,
		GrpcService: &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: ServerCluster},
		}},
	}
}

// logLines is one JSON object for each request, and each connection on TCP, with the same fields: what does not exist is null.
// Where the filters leave who decided is in zone/rbac.
func logLines(in *inbound, kri resources.KRI) *corev3.SubstitutionFormatString {
	said := func(key string) string { return "%DYNAMIC_METADATA(envoy.filters.network.rbac:" + key + ")%" }
	decided, request := "enforced_shadow_", map[string]string{}
	if in.http() {
		said = func(key string) string { return "%DYNAMIC_METADATA(envoy.filters.http.rbac:" + key + ")%" }
		decided = "enforced_"
		request = map[string]string{"method": "%REQ(:METHOD)%", "path": "%REQ(:PATH)%", "status": "%RESPONSE_CODE%"}
	}
	fields := map[string]*structpb.Value{
		"method": structpb.NewNullValue(), "path": structpb.NewNullValue(), "status": structpb.NewNullValue(),
	}
	for key, value := range request {
		fields[key] = structpb.NewStringValue(value)
	}
	for key, value := range map[string]string{
		"time": "%START_TIME%", "inbound": kri.String(), "client": "%DOWNSTREAM_PEER_URI_SAN%",
		"sni": "%REQUESTED_SERVER_NAME%", "policy": said(decided + "effective_policy_id"), "verdict": said(decided + "engine_result"),
		"shadowPolicy": said("dryrun_shadow_effective_policy_id"), "shadowVerdict": said("dryrun_shadow_engine_result"),
		"durationMs": "%DURATION%", "bytesReceived": "%BYTES_RECEIVED%", "bytesSent": "%BYTES_SENT%", "flags": "%RESPONSE_FLAGS%",
	} {
		fields[key] = structpb.NewStringValue(value)
	}
	return &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: &structpb.Struct{Fields: fields}}}
}
