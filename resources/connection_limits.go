package resources

import "encoding/json"

// limitsConnections reports whether a conf limits how long connections may take or last, not only requests.
func (c *TimeoutConf) limitsConnections() bool {
	return c.ConnectionTimeout != nil || c.IdleTimeout != nil || c.HTTP != nil &&
		(c.HTTP.MaxConnectionDuration != nil || c.HTTP.RequestHeadersTimeout != nil)
}

// LimitsConnections reports whether a policy is a MeshTimeout or MeshRateLimit that limits the connections to inbounds.
// Such confs apply only in rules without matches, because a connection exists before a request could match.
func LimitsConnections(r *Resource) bool {
	if r.Type != TypeMeshTimeout && r.Type != TypeMeshRateLimit {
		return false
	}
	p, err := SpecAs[Policy](r)
	if err != nil {
		return false
	}
	for i := range p.From {
		if confLimitsConnections(r.Type, p.From[i].Default) {
			return true
		}
	}
	for _, rule := range p.EffectiveRules() {
		if confLimitsConnections(r.Type, rule.Default) {
			return true
		}
	}
	return false
}

func confLimitsConnections(t Type, raw json.RawMessage) bool {
	if len(raw) == 0 {
		return false
	}
	if t == TypeMeshRateLimit {
		var conf RateLimitConf
		return json.Unmarshal(raw, &conf) == nil && conf.Local != nil && conf.Local.TCP != nil
	}
	var conf TimeoutConf
	return json.Unmarshal(raw, &conf) == nil && conf.limitsConnections()
}

// connectionLimitsByMatch returns the fields of a MeshTimeout's or MeshRateLimit's conf that have no effect in a rule
// with matches.
func connectionLimitsByMatch(t Type, raw json.RawMessage) []string {
	switch t {
	case TypeMeshRateLimit:
		if confLimitsConnections(t, raw) {
			return []string{"local.tcp"}
		}
	case TypeMeshTimeout:
		return timeoutsOfConnections(raw)
	}
	return nil
}

func timeoutsOfConnections(raw json.RawMessage) (out []string) {
	var conf TimeoutConf
	if json.Unmarshal(raw, &conf) != nil {
		return nil
	}
	http := &HTTPTimeout{}
	if conf.HTTP != nil {
		http = conf.HTTP
	}
	for _, field := range []struct {
		name string
		set  *string
	}{
		{"connectionTimeout", conf.ConnectionTimeout}, {"idleTimeout", conf.IdleTimeout},
		{"http.maxConnectionDuration", http.MaxConnectionDuration},
		{"http.requestHeadersTimeout", http.RequestHeadersTimeout},
	} {
		if field.set != nil {
			out = append(out, field.name)
		}
	}
	return out
}
