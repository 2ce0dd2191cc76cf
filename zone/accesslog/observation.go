package accesslog

import (
	"strings"
	"time"
	"unicode/utf8"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	datav3 "github.com/envoyproxy/go-control-plane/envoy/data/accesslog/v3"
	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Observation is one kind of request, or of connection on TCP, that an inbound judged.
type Observation struct {
	// Inbound is the inbound's KRI, and Client the client's SPIFFE ID.
	Inbound, Client string
	// Method and PathPrefix are empty on TCP, and Other if they are too unusual to keep. PathPrefix is the path's first
	// segment, "/" for the root alone.
	Method, PathPrefix string
	// Policy is the decider and Allowed its decision, as in rbac.Decision.
	Policy  string
	Allowed bool
	// ShadowPolicy would deny if every allowWithShadowDeny were a deny; empty if nothing would.
	ShadowPolicy string
}

// Other stands for methods and paths that are not distinguished.
const Other = "*"

// Limits on what a proxy sends.
const (
	maxSegment = 128
	maxText    = 512
)

// Namespaces and keys of Envoy's RBAC filters (envoy-rbac, "The list form"; zone/rbac, filters).
const (
	httpNamespace = "envoy.filters.http.rbac"
	tcpNamespace  = "envoy.filters.network.rbac"
	allowed       = "allowed"
	denied        = "denied"
)

// seen is an Observation with its path, without the query, and its time.
type seen struct {
	Observation

	path string
	at   time.Time
}

// read yields the observations in a message about an inbound. It skips requests that were not judged.
func read(inbound string, m *alsv3.StreamAccessLogsMessage) []seen {
	var out []seen
	for _, e := range m.GetHttpLogs().GetLogEntry() {
		o := Observation{Inbound: inbound, Method: method(e.GetRequest().GetRequestMethod()),
			PathPrefix: pathPrefix(e.GetRequest().GetPath())}
		judged := len(out)
		out = appendJudged(out, o, e.GetCommonProperties(), judgement{httpNamespace, "enforced_effective_policy_id",
			"enforced_engine_result"})
		if len(out) > judged {
			out[judged].path = wholePath(e.GetRequest().GetPath())
		}
	}
	for _, e := range m.GetTcpLogs().GetLogEntry() {
		o := Observation{Inbound: inbound}
		out = appendJudged(out, o, e.GetCommonProperties(),
			judgement{tcpNamespace, "enforced_shadow_effective_policy_id", "enforced_shadow_engine_result"})
	}
	return out
}

// judgement names the fields of a log entry with a decision and the deciding policy.
type judgement struct{ namespace, policy, result string }

func appendJudged(out []seen, o Observation, common *datav3.AccessLogCommon, where judgement) []seen {
	said := func(key string) string {
		return cut(metadata(common.GetMetadata(), where.namespace, key))
	}
	sans := common.GetTlsProperties().GetPeerCertificateProperties().GetSubjectAltName()
	o.Policy, o.Allowed = said(where.policy), said(where.result) != denied
	if o.Policy == "" { // if the handshake decides, it does so first
		o.Policy, o.Allowed = cut(stateOf(common, rbac.HandshakePolicy)), stateOf(common, rbac.HandshakeVerdict) == allowed
	}
	if o.Policy == "" {
		return out
	}
	if len(sans) == 1 {
		o.Client = cut(sans[0].GetUri())
	}
	if said("dryrun_shadow_engine_result") == denied && o.Allowed {
		o.ShadowPolicy = said("dryrun_shadow_effective_policy_id")
	}
	at := time.Time{} // unknown, or outside the calendar: it cannot be shown
	if start := common.GetStartTime(); start.IsValid() {
		at = start.AsTime()
	}
	return append(out, seen{Observation: o, at: at})
}

func metadata(m *corev3.Metadata, namespace, key string) string {
	return m.GetFilterMetadata()[namespace].GetFields()[key].GetStringValue()
}

// stateOf returns a text from a connection's filter state.
func stateOf(common *datav3.AccessLogCommon, key string) string {
	text := new(wrapperspb.StringValue)
	if object := common.GetFilterStateObjects()[key]; object == nil || object.UnmarshalTo(text) != nil {
		return ""
	}
	return text.GetValue()
}

// cut returns the beginning of a text as a copy: a substring would keep the whole string in memory.
func cut(s string) string { return strings.Clone(strings.ToValidUTF8(s[:min(len(s), maxText)], "")) }

func method(m corev3.RequestMethod) string {
	if m == corev3.RequestMethod_METHOD_UNSPECIFIED {
		return Other
	}
	return m.String()
}

// pathPrefix returns the first segment of a path.
func pathPrefix(path string) string {
	path, _, _ = strings.Cut(path, "?")
	segment, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if len(segment) > maxSegment || !strings.HasPrefix(path, "/") {
		return Other
	}
	return "/" + strings.ToValidUTF8(segment, "")
}

// wholePath returns a path without its query; empty if it is too long to keep.
func wholePath(path string) string {
	path, _, _ = strings.Cut(path, "?")
	if len(path) > maxPath || !utf8.ValidString(path) {
		return ""
	}
	return strings.Clone(path)
}
