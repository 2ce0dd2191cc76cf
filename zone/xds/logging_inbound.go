package xds

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// inboundLogs are the logs that MeshAccessLogs configure for an inbound, and what they need. It is immutable.
type inboundLogs struct {
	logs       []*accesslogv3.AccessLog
	collectors []*resource
	notes
}

// inboundLogsKey is everything that they depend on.
type inboundLogsKey struct {
	policies string
	http     bool
	from     logSource
	admin    uint32
}

// logInbounds adds the logs that MeshAccessLogs configure to inbounds.
func (t *target) logInbounds(policies []*matching.Policy) error {
	for i := range t.inbounds {
		in := &t.inbounds[i]
		key := inboundLogsKey{http: in.http(), admin: t.measured.adminPort,
			policies: matching.SelectedInbound(t.match, in.port, policies, resources.TypeMeshAccessLog)}
		if key.policies == "" {
			continue
		}
		rules, err := t.inboundLogRules(in, key.policies, policies)
		if err != nil {
			return err
		}
		if rules.say {
			key.from = t.logSource()
		}
		made, err := openable(&t.shared.inboundLogs, key, t.logFiles, func(files *logFiles) (*inboundLogs, error) {
			return rules.logs(&key, t.own, files), nil
		})
		if err != nil {
			return err
		}
		in.logged, t.observed.kept = made, append(t.observed.kept, rules)
		in.logs = append(in.logs, made.logs...)
		t.observed.collect(made.collectors)
		t.observed.problems = append(t.observed.problems, made.problems...)
	}
	return nil
}

// inboundLogRules are the rules of MeshAccessLogs for an inbound. say means that their logs may contain fields of the
// proxy itself. They are immutable.
type inboundLogRules struct {
	matching.InboundRules
	say bool
}

func (t *target) inboundLogRules(in *inbound, selected string, policies []*matching.Policy) (*inboundLogRules, error) {
	return t.shared.inboundLogRules.get(selected, func() (*inboundLogRules, error) {
		out := &inboundLogRules{InboundRules: matching.InboundConfs(matching.InboundInput{Type: resources.TypeMeshAccessLog,
			Proxy: t.match, Inbound: in.port, Policies: policies})}
		for i := range out.Items {
			out.say = out.say || saysProxy(out.Items[i].Conf)
		}
		return out, nil
	})
}

// logs builds the logs of an inbound.
func (r *inboundLogRules) logs(k *inboundLogsKey, own OwnFunc, files *logFiles) *inboundLogs {
	out, from := &inboundLogs{}, &k.from
	for j := range r.Items {
		rule := &r.Items[j]
		if rule.Match != nil {
			continue // apply and rollout status report that requests cannot be distinguished
		}
		logs, collectors, problems := from.logger(k.http, true, files, nearby{own, k.admin}, "%FILTER_STATE("+verifiedClient+":PLAIN)%",
			from.service).logs(rule.Conf, rule.Origins)
		out.logs, out.collectors = append(out.logs, logs...), append(out.collectors, collectors...)
		for _, p := range problems {
			out.problems = append(out.problems, rule.Origins[len(rule.Origins)-1].KRI().String()+": "+p)
		}
	}
	out.files = files.paths()
	return out
}
