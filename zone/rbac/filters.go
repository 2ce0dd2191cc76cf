package rbac

import (
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	netrbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
)

// Prefixes of the shadow's statistics and dynamic metadata. The decision if every allowWithShadowDeny were a deny is in
// `dryrun_shadow_effective_policy_id` and `dryrun_shadow_engine_result`: always on TCP, and on HTTP where a rule has
// allowWithShadowDeny. The deciding policy is in `enforced_effective_policy_id` on HTTP and in
// `enforced_shadow_effective_policy_id` on TCP, where Envoy names only the policies of a shadow.
const (
	dryRunPrefix   = "dryrun_"
	enforcedPrefix = "enforced_"
)

// DenyAllHTTP denies every request. An HTTP inbound has it until its rules arrive.
func DenyAllHTTP() *httprbac.RBAC {
	return &httprbac.RBAC{Matcher: denyAll(), ShadowRulesStatPrefix: dryRunPrefix, TrackPerRuleStats: true}
}

// DenyAllNetwork denies every connection. Both filters of a TCP inbound have it until the rules arrive.
func DenyAllNetwork(statPrefix string) *netrbac.RBAC {
	return &netrbac.RBAC{
		Matcher: denyAll(), ShadowMatcher: denyAll(), ShadowRulesStatPrefix: enforcedPrefix, StatPrefix: statPrefix,
	}
}
