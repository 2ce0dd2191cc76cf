package xds

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/file/v3"
	otelv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/open_telemetry/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/reach"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Formats of logs whose policy has none.
const (
	defaultHTTPLine = `[%START_TIME%] %KUMA_MESH% %KUMA_TRAFFIC_DIRECTION% %KUMA_SOURCE_SERVICE% => %KUMA_DESTINATION_SERVICE% "%REQ(:METHOD)% %REQ(:PATH)% %PROTOCOL%" ` +
		`%RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% policy=%DYNAMIC_METADATA(envoy.filters.http.rbac:enforced_effective_policy_id)%`
	defaultTCPLine = `[%START_TIME%] %KUMA_MESH% %KUMA_TRAFFIC_DIRECTION% %KUMA_SOURCE_SERVICE% => %KUMA_DESTINATION_SERVICE% ` +
		`%RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% policy=%DYNAMIC_METADATA(envoy.filters.network.rbac:enforced_shadow_effective_policy_id)%`
)

// logger builds the logs of one inbound or outbound, as policies configure them.
type logger struct {
	// values replaces the commands that only this server can resolve.
	values *strings.Replacer
	http   bool
	// prefix is the prefix of collectors' names: those of inbounds and outbounds are built separately. The name has the
	// policy that names the collector, and not the address, so that another address replaces no listener.
	prefix string
	// files may be nil: the proxy is then assumed to open all files.
	files *logFiles
	near  nearby
}

// logSource holds a proxy's own fields in logs. service is plain text.
type logSource struct{ mesh, zone, service, address string }

func (t *target) logSource() logSource {
	return logSource{mesh: plainText(t.dataplane.Mesh), zone: plainText(t.dataplane.Zone()),
		service: plainText(workloadOf(t.dataplane)), address: t.address()}
}

// logger returns a logger for traffic from source to destination, as formats name them.
func (from *logSource) logger(http, inbound bool, files *logFiles, near nearby, source, destination string) *logger {
	direction, prefix := "OUTBOUND", "causeway_log_to:"
	if inbound {
		direction, prefix = "INBOUND", "causeway_log:"
	}
	return &logger{http: http, prefix: prefix, files: files, near: near, values: strings.NewReplacer(
		"%KUMA_MESH%", from.mesh, "%KUMA_ZONE%", from.zone,
		"%KUMA_TRAFFIC_DIRECTION%", direction,
		"%KUMA_SOURCE_SERVICE%", source, "%KUMA_DESTINATION_SERVICE%", destination,
		"%KUMA_SOURCE_ADDRESS%", from.address, "%KUMA_SOURCE_ADDRESS_WITHOUT_PORT%", from.address,
	)}
}

// plainText escapes text so that it contains no command.
func plainText(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// logs builds the logs of a conf to which these policies contribute, and the clusters of their collectors. It leaves
// out invalid ones, and reports the reasons.
func (l *logger) logs(conf json.RawMessage, origins []matching.Origin) (logs []*accesslogv3.AccessLog,
	collectors []*resource, problems []string) {
	var parsed resources.AccessLogConf
	if err := json.Unmarshal(conf, &parsed); err != nil {
		return nil, nil, []string{"the conf does not match its type: " + err.Error()}
	}
	by := l.prefix + backendsOf(origins)
	for i := range parsed.Backends {
		b := &parsed.Backends[i]
		field, err := b.Check()
		if err == nil && b.TCP != nil {
			continue // apply and rollout status report that no proxy sends there
		}
		if err == nil && b.WritesFile() && slices.ContainsFunc(origins, ofProducer) {
			field, err = "file.path", errFileOfOthers
		}
		if err == nil && b.OpenTelemetry != nil {
			field, err = "openTelemetry.endpoint", l.refuses(b.OpenTelemetry, origins)
		}
		if err == nil && b.WritesFile() && l.files != nil {
			if problem := l.files.use(b.File.Path); problem != "" {
				field, err = "file.path", errors.New(problem)
			}
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("backends[%d].%s: %v", i, field, err))
			continue
		}
		log, collector, err := l.log(b, fmt.Sprintf("%s:%d", by, i))
		if err != nil {
			problems = append(problems, fmt.Sprintf("backends[%d]: %v", i, err))
			continue
		}
		logs = append(logs, log)
		if collector != nil {
			collectors = append(collectors, collector)
		}
	}
	return logs, collectors, problems
}

// refuses returns why the proxy sends no logs to a collector, or nil.
func (l *logger) refuses(o *resources.OpenTelemetryLog, origins []matching.Origin) error {
	host, port, err := resources.ParseCollectorEndpoint(o.Endpoint)
	if err != nil {
		return err
	}
	if why := reach.NoDestination(host); why != "" && slices.ContainsFunc(origins, ofProducer) {
		return fmt.Errorf("%s %s, and a policy of the service's producer may not send its clients' logs there", host, why)
	}
	return l.near.refuses(host, port)
}

// errFileOfOthers reports a producer's policy that writes to a file. The server refuses such a policy on write and on
// receipt; an earlier version may have accepted it.
var errFileOfOthers = errors.New("a policy of the service's producer may not make its clients' proxies write files")

func ofProducer(o matching.Origin) bool { return o.Policy.Role == resources.RoleProducer }

// backendsOf returns the item of a policy that the backends of a merged conf are of: a list replaces those before it.
func backendsOf(origins []matching.Origin) string {
	for i := len(origins) - 1; i >= 0; i-- {
		if origins[i].Sets("backends") {
			return fmt.Sprintf("%s:%d", origins[i].KRI(), origins[i].RuleIndex)
		}
	}
	return ""
}

// log builds the log of a backend; name is that of its collector's cluster.
func (l *logger) log(b *resources.AccessLogBackend, name string) (*accesslogv3.AccessLog, *resource, error) {
	var kind string
	var config message
	var collector *resource
	var err error
	switch {
	case b.OpenTelemetry != nil:
		kind = "envoy.access_loggers.open_telemetry"
		config, collector, err = l.openTelemetry(b.OpenTelemetry, name)
	case b.File.Path == "/dev/stdout":
		kind, config = "envoy.access_loggers.stdout", &streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: l.format(b.File.Format)}}
	case b.File.Path == "/dev/stderr":
		kind, config = "envoy.access_loggers.stderr", &streamv3.StderrAccessLog{AccessLogFormat: &streamv3.StderrAccessLog_LogFormat{LogFormat: l.format(b.File.Format)}}
	default:
		kind, config = "envoy.access_loggers.file", &filev3.FileAccessLog{Path: b.File.Path,
			AccessLogFormat: &filev3.FileAccessLog_LogFormat{LogFormat: l.format(b.File.Format)}}
	}
	if err != nil {
		return nil, nil, err
	}
	packed, err := pack(config)
	return &accesslogv3.AccessLog{Name: kind, ConfigType: &accesslogv3.AccessLog_TypedConfig{TypedConfig: packed}},
		collector, err
}

// format returns the format of a line.
func (l *logger) format(f *resources.LogFormat) *corev3.SubstitutionFormatString {
	line := l.line()
	var out *corev3.SubstitutionFormatString
	if f != nil && f.Type == resources.LogJSON {
		values := map[string]string{}
		for _, value := range f.JSON {
			values[value.Key] = l.values.Replace(value.Value)
		}
		out = asJSON(values)
	} else {
		if f != nil && f.Plain != nil {
			line = *f.Plain
		}
		out = &corev3.SubstitutionFormatString{Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: &corev3.DataSource{
			Specifier: &corev3.DataSource_InlineString{InlineString: l.values.Replace(line) + "\n"},
		}}}
	}
	out.OmitEmptyValues = f != nil && f.OmitEmptyValues != nil && *f.OmitEmptyValues
	return out
}

func (l *logger) line() string {
	if l.http {
		return defaultHTTPLine
	}
	return defaultTCPLine
}

func (l *logger) openTelemetry(o *resources.OpenTelemetryLog, cluster string) (*otelv3.OpenTelemetryAccessLogConfig, *resource, error) {
	host, port, err := resources.ParseCollectorEndpoint(o.Endpoint)
	if err != nil {
		return nil, nil, err
	}
	collector, err := newCollector(cluster, host, port, true)
	if err != nil {
		return nil, nil, err
	}
	config := &otelv3.OpenTelemetryAccessLogConfig{GrpcService: grpcTo(cluster), LogName: "causeway",
		Body: textValue(l.values.Replace(l.line()))}
	if len(o.Body) > 0 {
		if config.Body, err = l.body(o.Body); err != nil {
			return nil, nil, fmt.Errorf("openTelemetry.body: %w", err)
		}
	}
	for _, a := range o.Attributes {
		if config.Attributes == nil {
			config.Attributes = &commonv1.KeyValueList{}
		}
		config.Attributes.Values = append(config.Attributes.Values,
			&commonv1.KeyValue{Key: a.Key, Value: textValue(l.values.Replace(a.Value))})
	}
	return config, collector, nil
}

func textValue(s string) *commonv1.AnyValue {
	return &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: s}}
}

// body reads a record's body: a string, or an OTLP value.
func (l *logger) body(raw json.RawMessage) (*commonv1.AnyValue, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return textValue(l.values.Replace(text)), nil
	}
	out := &commonv1.AnyValue{}
	if err := protojson.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("is neither a string nor a value of OTLP: %w", err)
	}
	l.fill(out)
	return out, nil
}

// fill replaces the commands that this server resolves in all strings of a value.
func (l *logger) fill(v *commonv1.AnyValue) {
	if text, ok := v.GetValue().(*commonv1.AnyValue_StringValue); ok {
		text.StringValue = l.values.Replace(text.StringValue)
	}
	for _, item := range v.GetArrayValue().GetValues() {
		l.fill(item)
	}
	for _, item := range v.GetKvlistValue().GetValues() {
		l.fill(item.GetValue())
	}
}

// address returns the Dataplane's address.
func (t *target) address() string {
	switch {
	case len(t.inbounds) > 0:
		return t.inbounds[0].listen.address
	case t.gateway != nil && t.gateway.address != "":
		return t.gateway.address
	}
	return "-"
}

// collect adds collectors, each name once.
func (o *observed) collect(collectors []*resource) {
	for _, c := range collectors {
		if !named(o.collectors, c.name) {
			o.collectors = append(o.collectors, c)
		}
	}
}

func named(list []*resource, name string) bool {
	for _, r := range list {
		if r.name == name {
			return true
		}
	}
	return false
}
