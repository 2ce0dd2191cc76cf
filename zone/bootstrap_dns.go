package zone

import (
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/causeway-mesh/causeway/zone/xds"
)

// addDNS tells the zone where the proxy answers DNS queries.
func (cfg *BootstrapConfig) addDNS(node *corev3.Node) error {
	switch {
	case cfg.ClusterDNS && (cfg.DNSAddress != "" || len(cfg.DNSUpstreams) > 0):
		return errors.New("cluster dns: the cluster's resolver answers instead of the proxy: omit the DNS address")
	case cfg.ClusterDNS && cfg.Dataplane == "":
		return errors.New("cluster dns: a zone ingress resolves no names: omit it")
	case cfg.ClusterDNS:
		node.Metadata = withField(node.Metadata, xds.DNSKey, structpb.NewStructValue(&structpb.Struct{
			Fields: map[string]*structpb.Value{xds.DNSCluster: structpb.NewBoolValue(true)}}))
		return nil
	case cfg.DNSAddress == "" && len(cfg.DNSUpstreams) > 0:
		return errors.New("dns upstream: needs a DNS address on which the proxy answers: set one")
	case cfg.DNSAddress == "":
		return nil
	case cfg.Dataplane == "":
		return errors.New("dns address: a zone ingress answers no DNS queries: omit it")
	}
	if _, err := xds.ParseDNSAddress(cfg.DNSAddress); err != nil {
		return fmt.Errorf("dns address: %w", err)
	}
	if _, err := xds.ParseDNSUpstreams(cfg.DNSUpstreams); err != nil {
		return fmt.Errorf("dns upstream: %w", err)
	}
	fields := map[string]*structpb.Value{xds.DNSAddress: structpb.NewStringValue(cfg.DNSAddress)}
	if len(cfg.DNSUpstreams) > 0 {
		list := &structpb.ListValue{}
		for _, u := range cfg.DNSUpstreams {
			list.Values = append(list.Values, structpb.NewStringValue(u))
		}
		fields[xds.DNSUpstreams] = structpb.NewListValue(list)
	}
	node.Metadata = withField(node.Metadata, xds.DNSKey, structpb.NewStructValue(&structpb.Struct{Fields: fields}))
	return nil
}
