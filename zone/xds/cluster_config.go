package xds

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// clusterConfig is a cluster without its handshake, and what is to be said of it. Plans share it, so that a change of a
// route, or of a policy for one service, builds no other clusters. It is immutable.
type clusterConfig struct {
	// config is the cluster, marshalled.
	config string
	notes
}

// clusterKey is everything that it depends on, unless a proxy cannot open one of its files.
type clusterKey struct {
	name, display, protocol string
	// assignment is the name of the endpoints, if it is not the cluster's. weighed means that localities have weights.
	assignment string
	weighed    bool
	rules      clusterRules
}

// clusterConfig returns what the cluster of a backend is beside its handshake.
func (s *sender) clusterConfig(b *backend) (*clusterConfig, error) {
	key := clusterKey{name: b.name, display: b.service.Resource.DisplayName(), protocol: b.protocol,
		weighed: b.prefer != nil && len(b.prefer.Affinity) > 0, rules: s.clusterRules(b)}
	if b.prefer != nil || b.egress {
		key.assignment = b.assignment()
	}
	return sharedCluster(s, &s.target.shared.configs, key, func(alone *sender) (*clusterConfig, error) {
		return alone.newClusterConfig(b, &key)
	})
}

// newClusterConfig builds it from its key, for a sender that has nothing of the proxy but its files.
func (s *sender) newClusterConfig(b *backend, key *clusterKey) (*clusterConfig, error) {
	limits := s.timeoutsOf(s.timeouts.For(b.key()))
	c := &clusterv3.Cluster{
		Name:                 key.name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: overADS(), ServiceName: key.assignment},
		ConnectTimeout:       durationpb.New(limits.connect),
	}
	if b.http() {
		var err error
		if c.TypedExtensionProtocolOptions, err = httpOptions(b, &limits); err != nil {
			return nil, err
		}
	}
	s.breaker(c, b)
	s.balance(c, b)
	s.healthCheck(c, b)
	s.weigh(c, b)
	packed, err := pack(c)
	if err != nil {
		return nil, err
	}
	return &clusterConfig{string(packed.Value), s.notes()}, nil
}
