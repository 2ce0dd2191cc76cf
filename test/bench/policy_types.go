package main

import (
	"cmp"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/causeway-mesh/causeway/resources"
)

// policyType is a type of policy whose changes are measured.
type policyType struct {
	typ resources.Type
	// list is where the conf is: to, rules, or default for the whole proxy.
	list string
	// conf returns the n-th conf, and bytes that a message to a proxy contains only if it carries that conf.
	conf func(n int) (conf any, sign []byte)
	// meshOnly means that the conf is for all proxies only.
	meshOnly bool
	// moves means that a change replaces or adds listeners, as docs/reference/policies.md says of the type. ends means that
	// open streams end with them.
	moves, ends bool
	// begun means that the first policy moves listeners and later ones do not: it is there before streams are opened.
	begun bool
	// service is the service in `to`; benchService if it is empty.
	service string
	// ofAll and ofOne return the n-th version of a resource that is not a policy: for all proxies, and for one. ofOne is nil
	// if there is no such thing.
	ofAll func(n int) (path string, doc map[string]any, sign []byte)
	ofOne func(of, n int) (path string, doc map[string]any, sign []byte)
	// by says in the title how proxies get what changes, for a resource that is not a policy.
	by string
}

// benchService is the service that all proxies call.
const (
	benchService = "bench"
	benchPort    = 80
)

// serviceRef is a reference to the port of a service.
func serviceRef(kind, name string) object {
	return object{"kind": kind, "name": name, "port": benchPort}
}

func (t *policyType) title() string {
	if t.by != "" {
		return fmt.Sprintf("%s %s", t.typ, t.by)
	}
	return fmt.Sprintf("%s in %s", t.typ, t.list)
}

// all returns the n-th version of what concerns all proxies.
func (t *policyType) all(n int) (path string, doc map[string]any, sign []byte) {
	if t.ofAll != nil {
		return t.ofAll(n)
	}
	return t.policy("bench-"+t.list, n, object{"kind": "Mesh"})
}

// one returns the n-th version of what concerns one proxy.
func (t *policyType) one(of, n int) (path string, doc map[string]any, sign []byte) {
	if t.ofOne != nil {
		return t.ofOne(of, n)
	}
	return t.policy(fmt.Sprintf("bench-%s-%d", t.list, of), n, ofProxy(of))
}

// ofOneProxy reports whether there is something that concerns one proxy only.
func (t *policyType) ofOneProxy() bool { return !t.meshOnly && (t.ofAll == nil || t.ofOne != nil) }

// policy returns the n-th version of a policy with a name, for the proxies that target selects.
func (t *policyType) policy(name string, n int, target object) (path string, doc map[string]any, sign []byte) {
	conf, sign := t.conf(n)
	spec := object{"targetRef": target}
	switch t.list {
	case "to":
		item := object{"targetRef": object{"kind": "MeshService", "name": cmp.Or(t.service, benchService)}, "default": conf}
		if t.typ == resources.TypeMeshHTTPRoute || t.typ == resources.TypeMeshTCPRoute {
			delete(item, "default")
			item["rules"] = []any{conf}
		}
		spec["to"] = []any{item}
	case "rules":
		spec["rules"] = []any{object{"default": conf}}
	default:
		spec["default"] = conf
	}
	return "/meshes/default/" + t.path() + "/" + name,
		map[string]any{"type": t.typ, "mesh": "default", "name": name, "spec": spec}, sign
}

func (t *policyType) path() string {
	d, _ := resources.Lookup(t.typ)
	return d.Path
}

// moment returns a duration of less than eight seconds that only the n-th conf has, and its Protobuf encoding.
func moment(n int) (text string, sign []byte) {
	const seconds, perMicro = 7, 1000
	sign = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), seconds)
	sign = protowire.AppendVarint(protowire.AppendTag(sign, 2, protowire.VarintType), uint64(n+1)*perMicro)
	return fmt.Sprintf("%dus", seconds*1_000_000+n+1), sign
}

// amount returns a number that only the n-th conf has, and its Protobuf encoding.
func amount(n int) (number int, sign []byte) {
	const first = 5_000_003
	return first + n, protowire.AppendVarint(nil, uint64(first+n))
}

// word returns a word that only the n-th conf has.
func word(n int) (text string, sign []byte) {
	text = fmt.Sprintf("bench-word-%d-", n)
	return text, []byte(text)
}

// policyTypes are the types that are measured beside each other, on proxies of one HTTP inbound and one HTTP outbound.
// The first one disables the usual request timeout, and no other conf ends a request in progress.
func policyTypes() []policyType {
	return append(sentTypes(), receivedTypes()...)
}

// sentTypes are the types for outgoing traffic.
func sentTypes() []policyType {
	return []policyType{
		{typ: resources.TypeMeshTimeout, list: "to", conf: func(n int) (any, []byte) {
			text, sign := moment(n)
			return object{"http": object{"streamIdleTimeout": text, "requestTimeout": "0s"}}, sign
		}},
		{typ: resources.TypeMeshRetry, list: "to", conf: func(n int) (any, []byte) {
			text, sign := moment(n)
			return object{"http": object{"backOff": object{"baseInterval": text, "maxInterval": "1m"}}}, sign
		}},
		{typ: resources.TypeMeshCircuitBreaker, list: "to", conf: func(n int) (any, []byte) {
			number, sign := amount(n)
			return object{"connectionLimits": object{"maxConnections": number}}, sign
		}},
		{typ: resources.TypeMeshHealthCheck, list: "to", conf: func(n int) (any, []byte) {
			text, sign := moment(n)
			return object{"interval": text, "timeout": "1s", "http": object{"path": "/"}}, sign
		}},
		{typ: resources.TypeMeshLoadBalancingStrategy, list: "to", conf: func(n int) (any, []byte) {
			number, sign := amount(n)
			return object{"loadBalancer": object{"type": "RingHash", "ringHash": object{"maxRingSize": number}}}, sign
		}},
		{typ: resources.TypeMeshHTTPRoute, list: "to", conf: func(n int) (any, []byte) {
			text, sign := word(n)
			set := []any{object{"name": "x-bench", "value": text}}
			return object{"matches": []any{object{"path": object{"type": "PathPrefix", "value": "/"}}}, "default": object{
				"filters": []any{object{"type": "RequestHeaderModifier", "requestHeaderModifier": object{"set": set}}}}}, sign
		}},
		{typ: resources.TypeMeshAccessLog, list: "to", moves: true, ends: true, conf: loggedTo},
	}
}

// loggedTo is the conf of a MeshAccessLog.
func loggedTo(n int) (any, []byte) {
	text, sign := word(n)
	return object{"backends": []any{object{"type": "File", "file": object{"path": "/dev/stdout",
		"format": object{"type": "Plain", "plain": text}}}}}, sign
}

// receivedTypes are the types for incoming traffic, and for proxies themselves.
func receivedTypes() []policyType {
	return []policyType{
		{typ: resources.TypeMeshTimeout, list: "rules", conf: func(n int) (any, []byte) {
			text, sign := moment(n)
			return object{"http": object{"streamIdleTimeout": text}}, sign
		}},
		{typ: resources.TypeMeshCircuitBreaker, list: "rules", conf: func(n int) (any, []byte) {
			number, sign := amount(n)
			return object{"connectionLimits": object{"maxConnections": number}}, sign
		}},
		{typ: resources.TypeMeshRateLimit, list: "rules", conf: func(n int) (any, []byte) {
			number, sign := amount(n)
			return object{"local": object{"http": object{"requestRate": object{"num": number, "interval": "1s"}}}}, sign
		}},
		{typ: resources.TypeMeshFaultInjection, list: "rules", conf: func(n int) (any, []byte) {
			text, sign := moment(n)
			return object{"http": []any{object{"delay": object{"value": text, "percentage": 1}}}}, sign
		}},
		{typ: resources.TypeMeshAccessLog, list: "rules", moves: true, ends: true, conf: loggedTo},
		{typ: resources.TypeMeshTLS, list: "rules", moves: true, ends: true, meshOnly: true, conf: func(n int) (any, []byte) {
			cipher := []string{"ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"}[n%2]
			return object{"tlsVersion": object{"min": "TLS12"}, "tlsCiphers": []string{cipher}}, []byte(cipher)
		}},
		{typ: resources.TypeMeshTrace, list: "default", begun: true, conf: func(n int) (any, []byte) {
			text, sign := word(n)
			return object{"backends": []any{object{"type": "OpenTelemetry",
				"openTelemetry": object{"endpoint": "192.0.2.9:4317"}}},
				"tags": []any{object{"name": "bench", "literal": text}}}, sign
		}},
		{typ: resources.TypeMeshMetric, list: "default", moves: true, conf: func(n int) (any, []byte) {
			text, sign := word(n)
			return object{"backends": []any{object{"type": "Prometheus",
				"prometheus": object{"port": 7777, "path": "/" + text}}}}, sign
		}},
		{typ: resources.TypeMeshProxyPatch, list: "default", moves: true, conf: func(n int) (any, []byte) {
			text, sign := word(n)
			return object{"appendModifications": []any{object{"cluster": object{"operation": "Add",
				"value": "name: " + text + "\nconnectTimeout: 1s\ntype: STATIC\n"}}}}, sign
		}},
	}
}
