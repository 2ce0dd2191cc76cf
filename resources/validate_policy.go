package resources

import "encoding/json"

// policy checks the structure of a policy and, if its conf is known here, the conf.
func (v *validation) policy() {
	r := v.resource
	if r.Type == TypeMeshTrafficPermission && !r.Spec.strict {
		if v.strictly(); len(v.problems) > 0 {
			return // an unknown field or wrong kind would only be reported twice
		}
	}
	p, err := SpecAs[Policy](r)
	if err != nil {
		v.fail(top("spec"), "%v", err)
		return
	}
	spec := top("spec")
	v.lists(p, spec)
	if !v.peer && !v.fewItems(p, spec) {
		return
	}
	v.targetRef(p.TargetRef, spec.field("targetRef"), v.topLevelRef())
	for i := range p.To {
		v.to(&p.To[i], spec.field("to").item(i))
	}
	for i := range p.From {
		at := spec.field("from").item(i)
		v.targetRef(&p.From[i].TargetRef, at.field("targetRef"), v.fromRef())
		v.conf("from", p.From[i].Default, at.field("default"))
	}
	for i := range p.Rules {
		v.ruleConf(i, p.Rules[i].Default, spec.field("rules").item(i).field("default"))
		v.matches(p.Rules[i].Matches, spec.field("rules").item(i).field("matches"))
	}
	if len(p.Default) > 0 {
		v.ruleConf(len(p.Rules), p.Default, spec.field("default"))
	}
	v.gatewayPolicy(p, spec)
	v.namespacedPolicy(p, spec)
}

// strictly checks the stored JSON against the schema, for resources that did not come from DecodeDocuments.
func (v *validation) strictly() {
	docs, err := parseJSON(v.resource.Spec.JSON())
	if err != nil || len(docs) != 1 {
		v.fail(top("spec"), "%v", err)
		return
	}
	c := &strict{}
	c.check(docs[0], schemaOf(v.resource.Type), top("spec"))
	for i := range c.problems {
		c.problems[i].Line = 0
	}
	v.problems = append(v.problems, c.problems...)
}

// fewItems checks the number of items of each list.
func (v *validation) fewItems(p *Policy, spec *fieldPath) bool {
	to := v.few(len(p.To), MaxPolicyItems, spec.field("to"))
	from := v.few(len(p.From), MaxPolicyItems, spec.field("from"))
	return v.few(len(p.Rules), MaxPolicyItems, spec.field("rules")) && to && from
}

// lists checks that the shape of a policy allows its `to`, `from`, `rules` and `default`, and allows them together.
func (v *validation) lists(p *Policy, spec *fieldPath) {
	d := v.resource.Descriptor().Policy
	hasDefault := len(p.Default) > 0
	absent := func(name string, has, may bool) {
		if has && !may {
			v.fail(spec.field(name), "a %s has no %s: use %s", v.resource.Type, name, d.usage())
		}
	}
	absent("to", len(p.To) > 0, d.To)
	absent("from", len(p.From) > 0, d.From)
	absent("rules", len(p.Rules) > 0, d.Rules)
	absent("default", hasDefault, d.Rules || d.Single)
	if len(v.problems) > 0 {
		return
	}
	exclusive := func(name string, has bool) {
		if has && hasDefault && !d.Single {
			v.fail(spec.field("default"), "stands for one item of rules and cannot be combined with %s: use one of them", name)
		}
	}
	exclusive("rules", len(p.Rules) > 0)
	exclusive("from", len(p.From) > 0)
	exclusive("to", len(p.To) > 0)
	if len(p.Rules) > 0 && len(p.From) > 0 {
		v.fail(spec.field("from"), "cannot be combined with rules: use one of them")
	}
	if len(p.Rules) > 0 && len(p.To) > 0 {
		v.fail(spec.field("to"), "cannot be combined with rules: make two policies")
	}
	if len(p.To)+len(p.From)+len(p.Rules) == 0 && !hasDefault && !v.peer {
		v.fail(spec, "has no effect: use %s", d.usage())
	}
	if v.resource.Type == TypeMeshTrafficPermission {
		v.permissionRules(p, spec)
	}
}

// usage names the lists that a policy of the shape has.
func (s *PolicyShape) usage() string {
	switch {
	case s.Single:
		return "default"
	case s.Rules && s.To:
		return "to, or one of rules, from and default"
	case s.Rules:
		return "one of rules, from and default"
	default:
		return "to"
	}
}

func (v *validation) to(to *PolicyTo, at *fieldPath) {
	shape := v.resource.Descriptor().Policy
	v.targetRef(&to.TargetRef, at.field("targetRef"), v.toRef())
	if shape.Route {
		if len(to.Default) > 0 {
			v.fail(at.field("default"), "a %s has rules instead of a default", v.resource.Type)
		}
		v.routes(to.Rules, at.field("rules"))
		return
	}
	if len(to.Rules) > 0 {
		v.fail(at.field("rules"), "only routes have rules here: use default")
	}
	if len(to.Hostnames) > 0 {
		v.fail(at.field("hostnames"), "only a MeshHTTPRoute has hostnames")
	}
	if t := v.resource.Type; len(to.Default) > MaxRouteConfBytes && (t == TypeMeshRetry || t == TypeMeshLoadBalancingStrategy) {
		v.fail(at.field("default"), "has %d bytes, want at most %d: each route of each client's proxy has it", len(to.Default), MaxRouteConfBytes)
		return
	}
	v.conf("to", to.Default, at.field("default"))
}

// ruleConf checks the conf of an effective rule. The conf of a MeshTrafficPermission is decoded once for all readers.
func (v *validation) ruleConf(index int, raw json.RawMessage, at *fieldPath) {
	if v.resource.Type == TypeMeshTrafficPermission && len(raw) > 0 {
		if rules := PermissionRules(v.resource); index < len(rules) && rules[index].Err == nil {
			v.permission(&rules[index].Conf, at)
			return
		}
	}
	v.conf("rule", raw, at)
}

// conf checks a conf whose fields are known here. Any other conf must only exist.
func (v *validation) conf(place string, raw json.RawMessage, at *fieldPath) {
	if len(raw) == 0 {
		if !v.peer {
			v.fail(at, "is required")
		}
		return
	}
	v.confValues(raw, at)
	switch v.resource.Type {
	case TypeMeshTrafficPermission:
		if place == "from" {
			decodeConf(v, raw, at, (*validation).permissionAction)
		} else {
			decodeConf(v, raw, at, (*validation).permission)
		}
	case TypeMeshTimeout:
		decodeConf(v, raw, at, (*validation).timeout)
	case TypeMeshRateLimit:
		if place != "to" {
			decodeConf(v, raw, at, (*validation).rateLimit)
		}
	case TypeMeshAccessLog:
		decodeConf(v, raw, at, (*validation).accessLog)
	case TypeMeshMetric:
		decodeConf(v, raw, at, (*validation).metric)
	case TypeMeshLoadBalancingStrategy:
		decodeConf(v, raw, at, (*validation).balancing)
	case TypeMeshHealthCheck:
		decodeConf(v, raw, at, (*validation).healthCheck)
	case TypeMeshCircuitBreaker:
		decodeConf(v, raw, at, (*validation).breaker)
	case TypeMeshRetry:
		decodeConf(v, raw, at, (*validation).retry)
	case TypeMeshTLS:
		decodeConf(v, raw, at, (*validation).tls)
	case TypeMeshPassthrough:
		decodeConf(v, raw, at, (*validation).passthrough)
	case TypeMeshTrace:
		decodeConf(v, raw, at, (*validation).trace)
	case TypeMeshProxyPatch:
		v.proxyPatch(raw, at)
	case TypeMeshFaultInjection:
		if place != "to" {
			decodeConf(v, raw, at, (*validation).faultInjection)
		}
	}
}

// confValues refuses invalid values in what a user writes. For a peer's resource, the server reports them as left out
// instead.
func (v *validation) confValues(raw json.RawMessage, at *fieldPath) {
	if v.peer || confValues[v.resource.Type] == nil {
		return
	}
	var conf any
	if json.Unmarshal(raw, &conf) != nil {
		return
	}
	checkValues(v.resource.Type, conf, at, func(at *fieldPath, problem string) { v.fail(at, "%s", problem) })
}

func decodeConf[T any](v *validation, raw json.RawMessage, at *fieldPath, check func(*validation, *T, *fieldPath)) {
	conf := new(T)
	if err := json.Unmarshal(raw, conf); err != nil {
		v.fail(at, "%v", err)
		return
	}
	check(v, conf, at)
}

// matches checks `rules[].matches`, whose items have the shape of the entries of a MeshTrafficPermission.
func (v *validation) matches(matches []json.RawMessage, at *fieldPath) {
	if len(matches) > 0 && v.resource.Type == TypeMeshTrafficPermission {
		v.fail(at, "the rules of a MeshTrafficPermission have no matches: its conf names the clients")
		return
	}
	if v.peer { // a peer's match may have more fields
		return
	}
	check := (*validation).permissionMatch
	if byRoute(v.resource.Type) {
		check = (*validation).receivedMatch
	}
	for i, raw := range matches {
		decodeConf(v, raw, at.item(i), check)
	}
}

// byRoute reports whether the rules of a policy type are selected by an inbound's routes.
func byRoute(t Type) bool {
	d, ok := Lookup(t)
	return ok && d.Policy != nil && d.Policy.ByRoute
}

// refRules are the rules for a targetRef at one place.
type refRules struct {
	kinds []string
	// sections are the kinds that may carry a sectionName here.
	sections []string
	// because follows the kinds in the text of a refusal.
	because string
}

func (v *validation) topLevelRef() refRules {
	shape := v.resource.Descriptor().Policy
	rules := refRules{kinds: []string{KindMesh, KindDataplane, KindMeshSubset, KindMeshService, KindMeshServiceSubset}}
	if v.resource.Type != TypeMeshTrafficPermission {
		rules.kinds = append(rules.kinds, KindMeshGateway)
	}
	if v.peer && v.resource.Type != TypeMeshTrafficPermission {
		rules.kinds = append(rules.kinds, KindMeshHTTPRoute)
	}
	if shape.Rules || shape.From || v.peer {
		rules.sections = []string{KindDataplane}
	}
	return rules
}

func (v *validation) toRef() refRules {
	rules := refRules{
		kinds:    []string{KindMesh, KindMeshService, KindMeshExternalService, KindMeshMultiZoneService},
		sections: []string{KindMeshService, KindMeshExternalService, KindMeshMultiZoneService},
	}
	if !v.resource.Descriptor().Policy.Route {
		rules.kinds = append(rules.kinds, KindMeshHTTPRoute, KindMeshTCPRoute)
	}
	if v.peer {
		rules.kinds = append(rules.kinds, KindMeshServiceSubset, KindMeshSubset)
	}
	return rules
}

func (v *validation) fromRef() refRules {
	if v.resource.Type == TypeMeshTLS && !v.peer {
		return refRules{kinds: []string{KindMesh}, because: ": a client's identity is known only after the handshake"}
	}
	if byRoute(v.resource.Type) && !v.peer {
		return refRules{kinds: []string{KindMesh},
			because: ": identities carry no tags, so tags cannot distinguish clients"}
	}
	return refRules{kinds: []string{KindMesh, KindMeshSubset, KindMeshService, KindMeshServiceSubset}}
}

// needsName lists the kinds that require a name or labels.
var needsName = []string{
	KindMeshService, KindMeshServiceSubset, KindMeshExternalService, KindMeshMultiZoneService, KindMeshGateway,
	KindMeshHTTPRoute, KindMeshTCPRoute,
}
