package xds

import (
	"sync"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	setv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/set_filter_state/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/accesslog"
)

// verifiedClient is the key under which a connection keeps the URI of its client's certificate after the handshake.
// Before that a certificate is only a claim: its authority may be unknown, and its key stolen.
const verifiedClient = "causeway.client"

// noteClient returns the filter that stores it, made once for all inbounds.
var noteClient = sync.OnceValues(func() (*listenerv3.Filter, error) {
	config, err := pack(&setv3.Config{OnDownstreamTlsHandshake: []*commonv3.FilterStateValue{{
		Key:        &commonv3.FilterStateValue_ObjectKey{ObjectKey: verifiedClient},
		FactoryKey: "envoy.string",
		Value: &commonv3.FilterStateValue_FormatString{FormatString: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: "%DOWNSTREAM_PEER_URI_SAN%"},
			}},
		}},
		SkipIfEmpty: true,
	}}})
	return &listenerv3.Filter{Name: "causeway.client", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config}},
		err
})

// newRefusedLog returns a log of connections that ended in their handshake, which the HTTP filters never see.
func newRefusedLog(in *inbound, sink accesslog.Sink, kri resources.KRI) (*accesslogv3.AccessLog, error) {
	log, err := newLog(in, sink, asJSON(connectionFields(kri)))
	if err != nil {
		return nil, err
	}
	failed, err := pack(&celv3.ExpressionFilter{Expression: "has(connection.transport_failure_reason)"})
	if err != nil {
		return nil, err
	}
	log.Filter = &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ExtensionFilter{
		ExtensionFilter: &accesslogv3.ExtensionFilter{
			Name:       "envoy.access_loggers.extension_filters.cel",
			ConfigType: &accesslogv3.ExtensionFilter_TypedConfig{TypedConfig: failed},
		},
	}}
	return log, nil
}
