package xds

// plainRoutes is the table of an HTTP outbound that no MeshHTTPRoute changes. Plans share it, so that a change of a policy for
// something else builds no tables. It is immutable.
type plainRoutes struct {
	*resource
	notes
}

// plainKey is everything that it depends on.
type plainKey struct {
	name, backend, protocol string
	external, asked         bool
	// These identify the rules for the service.
	timeouts, retries, balancing string
}

// tableOf returns the table of an HTTP outbound. A gateway has its trace in it, and shares none.
func (s *sender) tableOf(p *plan, d *destined) (*resource, error) {
	if len(d.httpRoutes) > 0 || s.target.gateway != nil {
		route, err := s.routes(d)
		if err != nil {
			return nil, err
		}
		return s.target.shared.alike.one(kindRoute, route), nil
	}
	of := d.key()
	key := plainKey{name: d.name, backend: d.backend.name, protocol: d.protocol, external: d.external != nil, asked: s.asked,
		timeouts: s.timeouts.For(of).ID(), retries: s.retries.For(of).ID(), balancing: s.balancing.For(of).ID()}
	made, err := s.target.shared.plain.get(key, func() (*plainRoutes, error) {
		alone := &sender{target: &target{}, asked: s.asked, timeouts: s.timeouts, retries: s.retries, balancing: s.balancing}
		route, err := alone.routes(d)
		if err != nil {
			return nil, err
		}
		return &plainRoutes{s.target.shared.alike.one(kindRoute, route), alone.notes()}, nil
	})
	if err != nil {
		return nil, err
	}
	p.plain, s.out.problems = append(p.plain, made), append(s.out.problems, made.problems...)
	return made.resource, nil
}
