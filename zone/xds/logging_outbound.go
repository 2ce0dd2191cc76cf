package xds

import (
	"bytes"
	"encoding/json"
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// logsKey is everything that the rules for outbound logs depend on.
type logsKey struct {
	policies              string
	mesh, zone, namespace string
	tagged                string
	meaning               *matching.Meaning // of references
}

// logRules are the rules of MeshAccessLogs for outbounds. Proxies share them.
type logRules struct {
	matching.ToRules
	// same holds the confs whose logs do not depend on the proxy.
	same map[*matching.ResourceRule]bool
}

// outboundLogs are the logs of an outbound. It is immutable.
type outboundLogs struct {
	logs       []*accesslogv3.AccessLog
	collectors []*resource
	notes
}

// outboundLogsKey is everything that the logs of an outbound depend on if they do not depend on the proxy.
type outboundLogsKey struct {
	rule    *matching.ResourceRule
	http    bool
	service string
	admin   uint32
}

// outboundLogs returns the logs of a listener. Other listeners share those that say nothing of the proxy and leave out none
// of its files: the rest of a listener of HTTP has the name of the proxy's workload if it is traced.
func (t *target) outboundLogs(k *listenedKey, files *logFiles) *outboundLogs {
	if k.from != (logSource{}) || files == t.logFiles {
		return k.loggedBy(t.own, files)
	}
	made, _ := t.shared.outboundLogs.get(outboundLogsKey{k.logs, k.http, k.service, k.admin},
		func() (*outboundLogs, error) { return k.loggedBy(t.own, &logFiles{}), nil })
	return made
}

// loggedBy builds the logs of a listener.
func (k *listenedKey) loggedBy(own OwnFunc, files *logFiles) *outboundLogs {
	out := &outboundLogs{}
	if k.logs == nil {
		return out
	}
	var problems []string
	out.logs, out.collectors, problems = k.from.logger(k.http, false, files, nearby{own, k.admin}, k.from.service,
		plainText(k.service)).logs(k.logs.Conf, k.logs.Origins)
	for _, p := range problems {
		out.problems = append(out.problems, originOf(k.logs)+": "+p)
	}
	out.files = files.paths()
	return out
}

func (s *sender) logRules() (*logRules, error) {
	of := s.target.match
	key := logsKey{policies: matching.Selected(of, s.policies, resources.TypeMeshAccessLog), mesh: of.Key.Mesh,
		zone: of.Zone, namespace: of.Namespace, tagged: taggedText(s.tagged), meaning: s.dests.Meaning()}
	return s.target.shared.logs.get(key, func() (*logRules, error) {
		out := &logRules{same: map[*matching.ResourceRule]bool{}, ToRules: matching.To(matching.ToInput{
			Type: resources.TypeMeshAccessLog, Proxy: of, Policies: s.policies, Destinations: s.dests,
			Tagged: taggedRules(s.tagged)})}
		for _, rule := range out.ResourceRules {
			out.same[rule] = !saysProxy(rule.Conf)
		}
		return out, nil
	})
}

// saysProxy reports whether logs of a conf may contain fields of the proxy itself: default lines do.
func saysProxy(raw json.RawMessage) bool {
	var conf resources.AccessLogConf
	if json.Unmarshal(raw, &conf) != nil || bytes.Contains(raw, []byte("KUMA_")) {
		return true
	}
	return slices.ContainsFunc(conf.Backends, func(b resources.AccessLogBackend) bool {
		if b.OpenTelemetry != nil {
			return len(b.OpenTelemetry.Body) == 0
		}
		f := b.File
		return f != nil && (f.Format == nil || f.Format.Type != resources.LogJSON && f.Format.Plain == nil)
	})
}

// logged builds the logs of a rule, and adds the clusters of their collectors.
func (s *sender) logged(l *logger, rule *matching.ResourceRule) []*accesslogv3.AccessLog {
	logs, collectors, problems := l.logs(rule.Conf, rule.Origins)
	for _, c := range collectors {
		if !named(s.out.sets[kindCluster], c.name) {
			s.out.sets[kindCluster] = append(s.out.sets[kindCluster], c)
		}
	}
	for _, p := range problems {
		s.problem(rule.Origins[len(rule.Origins)-1].KRI().String(), p)
	}
	return logs
}
