package xds

// clusterRules identify the rules that the cluster of a service depends on.
type clusterRules struct {
	asked                                 bool
	timeouts, breakers, balancing, health string
}

func (s *sender) clusterRules(b *backend) clusterRules {
	of := b.key()
	return clusterRules{s.asked, s.timeouts.For(of).ID(), s.breakers.For(of).ID(), s.balancing.For(of).ID(), s.health.For(of).ID()}
}

// sharedCluster returns the cluster of a key, and adds its problems to those of s. build gets a sender that has the rules of
// s for clusters, and nothing of the proxy but its files.
func sharedCluster[K comparable, V any, P noting[V]](s *sender, of *table[K, V], key K,
	build func(*sender) (*V, error)) (*V, error) {
	made, err := openable[K, V, P](of, key, s.target.logFiles, func(files *logFiles) (*V, error) {
		return build(&sender{target: &target{logFiles: files}, asked: s.asked, timeouts: s.timeouts, breakers: s.breakers,
			balancing: s.balancing, health: s.health})
	})
	if err != nil {
		return nil, err
	}
	s.out.problems = append(s.out.problems, P(made).noted().problems...)
	return made, nil
}

// notes returns those of what s has built.
func (s *sender) notes() notes { return notes{s.out.problems, s.target.logFiles.paths()} }
