package xds

import (
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/identity"
)

const (
	// SpireCluster is the cluster of a proxy's bootstrap that leads to the SPIRE agent's socket. Envoy requests secrets
	// from no other kind of cluster.
	SpireCluster = "spire_agent"
	// allBundles is the agent's name for the bundles of its own and all federated trust domains, with a validator that
	// distinguishes them.
	allBundles = "ALL"
)

// spireSecrets returns the names that a SPIRE agent knows. The identity's name is the SPIFFE ID itself, so that an
// agent that would issue another one issues none.
func spireSecrets(who *identity.Assigned) secretNames {
	return secretNames{identity: who.ID.String(), trust: allBundles, spire: true, wait: who.Wait}
}

// source returns where a proxy gets its identity and the bundles to verify clients.
func (n *secretNames) source() *corev3.ConfigSource {
	if !n.spire {
		return overADS()
	}
	out := &corev3.ConfigSource{
		ResourceApiVersion: corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_GRPC, TransportApiVersion: corev3.ApiVersion_V3, SetNodeOnFirstMessageOnly: true,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: SpireCluster}}}},
		}},
	}
	if n.wait > 0 {
		out.InitialFetchTimeout = durationpb.New(n.wait)
	}
	return out
}

// forSpire converts the clusters of a proxy with a SPIRE identity. The SPIFFE IDs of the service are in the cluster
// itself, since the agent's bundles must verify them, and Envoy accepts one secret for that. It leaves out what it
// cannot convert, and returns that in unsupported.
func forSpire(sets [kinds]set, names *secretNames) (out [kinds]set, unsupported []string) {
	out = sets
	out[kindCluster], out[kindSecret] = nil, nil
	var clusters []*resource
	for _, r := range sets[kindCluster] {
		rewritten, err := spireCluster(r, sets[kindSecret], names)
		if err != nil {
			unsupported = append(unsupported, fmt.Sprintf("%s: %v", r.name, err))
			continue
		}
		clusters = append(clusters, rewritten)
	}
	out[kindCluster] = newSet(clusters...)
	slices.Sort(unsupported)
	return out, unsupported
}

func spireCluster(r *resource, secrets set, names *secretNames) (*resource, error) {
	cluster, context := &clusterv3.Cluster{}, &tlsv3.UpstreamTlsContext{}
	if err := r.delta.GetResource().UnmarshalTo(cluster); err != nil {
		return nil, err
	}
	if socket := cluster.GetTransportSocket().GetTypedConfig(); socket == nil || !socket.MessageIs(context) {
		return r, nil // in the clear, to an external service
	} else if err := socket.UnmarshalTo(context); err != nil {
		return nil, err
	}
	asked := context.GetCommonTlsContext().GetValidationContextSdsSecretConfig()
	if asked.GetName() != identitiesOf(r.name) {
		return r, nil // an external service, with an authority of its own
	}
	identities, secret := secrets.get(identitiesOf(r.name)), &tlsv3.Secret{}
	if identities == nil {
		return nil, fmt.Errorf("%w: its identities are not known yet", ErrConfig)
	}
	if err := identities.delta.GetResource().UnmarshalTo(secret); err != nil {
		return nil, err
	}
	context.CommonTlsContext.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{
		CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext: &tlsv3.CertificateValidationContext{
				MatchTypedSubjectAltNames: secret.GetValidationContext().GetMatchTypedSubjectAltNames(),
			},
			ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: names.trust, SdsConfig: names.source()},
		},
	}
	tls, err := pack(context)
	if err != nil {
		return nil, err
	}
	cluster.TransportSocket.ConfigType = &corev3.TransportSocket_TypedConfig{TypedConfig: tls}
	for _, m := range cluster.GetTransportSocketMatches() {
		spelt := &tlsv3.UpstreamTlsContext{}
		if err := m.GetTransportSocket().GetTypedConfig().UnmarshalTo(spelt); err != nil {
			return nil, err
		}
		context.Sni = spelt.GetSni()
		if tls, err = pack(context); err != nil {
			return nil, err
		}
		m.TransportSocket.ConfigType = &corev3.TransportSocket_TypedConfig{TypedConfig: tls}
	}
	return newResource(kindCluster, r.name, cluster)
}

// namesOf returns the names of a Dataplane's secrets, and where they come from.
func namesOf(dp resources.Key, who *identity.Assigned) secretNames {
	if who.Spire {
		return spireSecrets(who)
	}
	return secretsOf(dp, who)
}
