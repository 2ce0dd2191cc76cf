package xds

import (
	"maps"
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/grpc/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/accesslog"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// ServerCluster is the cluster in proxies' bootstrap that leads to this server.
const ServerCluster = "causeway_zone"

// setLogs adds access logs to the inbounds of a Dataplane.
func (t *target) setLogs(sinks []accesslog.Sink) error {
	for i := range t.inbounds {
		in := &t.inbounds[i]
		in.logs, in.refused = nil, nil
		for _, sink := range sinks {
			kri := resources.KRIOf(t.dataplane).WithSection(in.section)
			log, err := newLog(in, sink, logLines(in, kri))
			if err != nil {
				return err
			}
			in.logs = append(in.logs, log)
			if !in.http() || sink == accesslog.Service {
				continue
			}
			refused, err := newRefusedLog(in, sink, kri)
			if err != nil {
				return err
			}
			in.refused = append(in.refused, refused)
		}
		in.logs = slices.Clip(in.logs) // more are added for each change of policies
	}
	return nil
}

func newLog(in *inbound, sink accesslog.Sink, lines *corev3.SubstitutionFormatString) (*accesslogv3.AccessLog, error) {
	var name string
	var config message
	switch {
	case sink == accesslog.Stdout:
		name, config = "envoy.access_loggers.stdout",
			&streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: lines}}
	case sink != accesslog.Service:
		name, config = "envoy.access_loggers.file", &filev3.FileAccessLog{Path: string(sink),
			AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: lines}}
	case in.http():
		name, config = "envoy.access_loggers.http_grpc", &alsv3.HttpGrpcAccessLogConfig{CommonConfig: logService(in)}
	default:
		name, config = "envoy.access_loggers.tcp_grpc", &alsv3.TcpGrpcAccessLogConfig{CommonConfig: logService(in)}
	}
	packed, err := pack(config)
	return &accesslogv3.AccessLog{Name: name, ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: packed}}, err
}

// logService returns the configuration that sends an inbound's log to this server, under the inbound's name.
func logService(in *inbound) *alsv3.CommonGrpcAccessLogConfig {
	config := &alsv3.CommonGrpcAccessLogConfig{
		LogName:             in.section,
		TransportApiVersion: corev3.ApiVersion_V3,
		GrpcService: &corev3.GrpcService{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: ServerCluster},
		}},
	}
	if in.serverFirst {
		config.FilterStateObjectsToLog = []string{rbac.HandshakeVerdict, rbac.HandshakePolicy}
	}
	return config
}

// logLines returns the format: one JSON object for each request, and for each connection on TCP, with the same fields.
// A missing field is null. zone/rbac documents where the filters record who decided.
func logLines(in *inbound, kri resources.KRI) *corev3.SubstitutionFormatString {
	values := connectionFields(kri)
	said := func(key string) string { return "%DYNAMIC_METADATA(envoy.filters.network.rbac:" + key + ")%" }
	decided := "enforced_shadow_"
	if in.http() {
		said = func(key string) string { return "%DYNAMIC_METADATA(envoy.filters.http.rbac:" + key + ")%" }
		decided = "enforced_"
		maps.Copy(values, map[string]string{"method": "%REQ(:METHOD)%", "path": "%REQ(:PATH)%", "status": "%RESPONSE_CODE%"})
		// There is no request before the handshake ends, and it ends only once the client is verified.
		values["client"], values["claim"] = "%DOWNSTREAM_PEER_URI_SAN%", ""
	}
	maps.Copy(values, map[string]string{
		"policy": said(decided + "effective_policy_id"), "verdict": said(decided + "engine_result"),
		"shadowPolicy": said("dryrun_shadow_effective_policy_id"), "shadowVerdict": said("dryrun_shadow_engine_result"),
	})
	if in.serverFirst { // no other filter sees a client that the handshake denies
		values["policy"], values["verdict"] = "%FILTER_STATE("+rbac.HandshakePolicy+":PLAIN)%",
			"%FILTER_STATE("+rbac.HandshakeVerdict+":PLAIN)%"
	}
	return asJSON(values)
}

// connectionFields returns the fields of a connection that was not judged. Fields that are null in every line are
// empty.
func connectionFields(kri resources.KRI) map[string]string {
	return map[string]string{
		"time": "%START_TIME%", "inbound": kri.String(), "client": "%FILTER_STATE(" + verifiedClient + ":PLAIN)%",
		"claim": "%DOWNSTREAM_PEER_URI_SAN%",
		"sni":   "%REQUESTED_SERVER_NAME%", "durationMs": "%DURATION%", "bytesReceived": "%BYTES_RECEIVED%",
		"bytesSent": "%BYTES_SENT%",
		"flags":     "%RESPONSE_FLAGS%", "tlsFailure": "%DOWNSTREAM_TRANSPORT_FAILURE_REASON%",
		"method": "", "path": "", "status": "", "policy": "", "verdict": "", "shadowPolicy": "", "shadowVerdict": "",
	}
}

func asJSON(values map[string]string) *corev3.SubstitutionFormatString {
	fields := map[string]*structpb.Value{}
	for key, value := range values {
		if fields[key] = structpb.NewStringValue(value); value == "" {
			fields[key] = structpb.NewNullValue()
		}
	}
	return &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: &structpb.Struct{Fields: fields}}}
}
