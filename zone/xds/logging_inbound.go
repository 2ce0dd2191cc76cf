package xds

import (
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// inboundLogs are the logs that MeshAccessLogs configure for an inbound, and what they need. It is immutable.
type inboundLogs struct {
	logs       []*accesslogv3.AccessLog
	collectors []*resource
	files      []string
	problems   []string
}

// inboundLogsKey is all that they depend on.
type inboundLogsKey struct {
	policies string
	http     bool
	from     logSource
}

// logInbounds adds the logs that MeshAccessLogs configure to inbounds.
func (t *target) logInbounds(policies []*matching.Policy) error {
	for i := range t.inbounds {
		in := &t.inbounds[i]
		key := inboundLogsKey{http: in.http(),
			policies: matching.SelectedInbound(t.match, in.port, policies, resources.TypeMeshAccessLog)}
		if key.policies == "" {
			continue
		}
		key.from = t.logSource()
		made, err := t.shared.inboundLogs.get(key, func() (*inboundLogs, error) {
			return t.inboundLogs(in, policies, &logFiles{}), nil
		})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(made.files, func(file string) bool { return t.logFiles.use(file) != "" }) {
			made = t.inboundLogs(in, policies, t.logFiles)
		}
		in.logged = made
		in.logs = append(in.logs, made.logs...)
		t.observed.collect(made.collectors)
		t.observed.problems = append(t.observed.problems, made.problems...)
	}
	return nil
}

// inboundLogs makes the logs of an inbound.
func (t *target) inboundLogs(in *inbound, policies []*matching.Policy, files *logFiles) *inboundLogs {
	out, from := &inboundLogs{}, t.logSource()
	rules := matching.InboundConfs(matching.InboundInput{Type: resources.TypeMeshAccessLog, Proxy: t.match,
		Inbound: in.port, Policies: policies})
	for j := range rules.Items {
		rule := &rules.Items[j]
		if rule.Match != nil {
			continue // apply and rollout status report that requests cannot be told apart
		}
		logs, collectors, problems := from.logger(in.http(), true, files, "%FILTER_STATE("+verifiedClient+":PLAIN)%",
			from.service).logs(rule.Conf, rule.Origins)
		out.logs, out.collectors = append(out.logs, logs...), append(out.collectors, collectors...)
		for _, p := range problems {
			out.problems = append(out.problems, rule.Origins[len(rule.Origins)-1].KRI().String()+": "+p)
		}
	}
	out.files = files.paths()
	return out
}
