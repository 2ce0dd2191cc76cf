package resources

import "encoding/json"

// limitsConnections reports whether a conf limits how long connections may take or last, and not only requests.
func (c *TimeoutConf) limitsConnections() bool {
	return c.ConnectionTimeout != nil || c.IdleTimeout != nil || c.HTTP != nil &&
		(c.HTTP.MaxConnectionDuration != nil || c.HTTP.RequestHeadersTimeout != nil)
}

// LimitsConnections reports whether a policy is a MeshTimeout that limits the connections that inbounds receive. Its
// confs count there without matches only: a connection is there before a request could match.
func LimitsConnections(r *Resource) bool {
	if r.Type != TypeMeshTimeout {
		return false
	}
	p, err := SpecAs[Policy](r)
	if err != nil {
		return false
	}
	limits := func(raw json.RawMessage) bool {
		var conf TimeoutConf
		return len(raw) > 0 && json.Unmarshal(raw, &conf) == nil && conf.limitsConnections()
	}
	for i := range p.From {
		if limits(p.From[i].Default) {
			return true
		}
	}
	for _, rule := range p.EffectiveRules() {
		if limits(rule.Default) {
			return true
		}
	}
	return false
}

// connectionLimitsByMatch are the fields of TimeoutConf that have no effect in a rule with matches.
func connectionLimitsByMatch(raw json.RawMessage) []string {
	var conf TimeoutConf
	if json.Unmarshal(raw, &conf) != nil {
		return nil
	}
	var out []string
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
