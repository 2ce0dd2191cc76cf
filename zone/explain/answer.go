package explain

import "github.com/causeway-mesh/causeway/resources"

// Verdicts, as answers, tests and reports spell them.
const (
	Allow = "allow"
	Deny  = "deny"
)

// nobody is the decider of requests that Envoy refuses before it evaluates the rules.
const nobody = "envoy"

// Answer is the verdict about a request, with the reasons.
type Answer struct {
	// Verdict is Allow or Deny.
	Verdict string `json:"verdict"`
	// Policy is the KRI of the policy that decided, or the name of a decision that no policy made: "default",
	// "multiple-uri-sans", "malformed-uri-san", "unusual-method", "other-path", or "envoy" for a request that Envoy
	// refuses before it evaluates the rules.
	Policy string `json:"policy"`
	// Rule is the index among the policy's rules, and Field is the path in the policy of the entry that decided.
	// Without a policy they are -1 and empty.
	Rule   int    `json:"rule"`
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
	// Shadow is the verdict if each allowWithShadowDeny were a deny; absent if it is the same.
	Shadow *Shadow `json:"shadow,omitempty"`
	// Inbound is the KRI of the inbound that was judged, with its name or port at the end. Protocol is http or tcp.
	Inbound  string `json:"inbound"`
	Protocol string `json:"protocol"`
	// Request is the request as the rules see it.
	Request Request `json:"request"`
	// Matched are all entries that match the request, in the order of evaluation. The first decides.
	Matched []Matched `json:"matched"`
	// Would lists changes that would change the verdict.
	Would []string `json:"would,omitempty"`
	// Unguarded names the MeshProxyPatches of the proxy that may admit what the verdict denies. An ordinary one cannot.
	Unguarded []string `json:"unguarded,omitempty"`
	// Warnings report other relevant facts: policies that do not apply here as written, and clients that cannot
	// connect.
	Warnings []string `json:"warnings,omitempty"`
	// Proxies lists all proxies that the question selects, if it selects several. The answer is that of the first that
	// denies, or else of the first.
	Proxies []ProxyVerdict `json:"proxies,omitempty"`
	// LeftOut counts what the caller may not read: policies that apply to the inbound, and Dataplanes that the question
	// may also select. If such a policy decides, its name is Hidden.
	LeftOut int `json:"leftOut,omitempty"`
}

// Allowed reports whether the request is allowed.
func (a *Answer) Allowed() bool { return a.Verdict == Allow }

// Shadow is the verdict of a dry run.
type Shadow struct {
	Verdict string `json:"verdict"`
	Policy  string `json:"policy"`
}

// Request is a request as the rules see it: its path is normalised.
type Request struct {
	From   string `json:"from"`
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	SNI    string `json:"sni,omitempty"`
	// Headers are by lower-case name.
	Headers map[string]string `json:"headers,omitempty"`
}

// Matched is one entry that matches a request.
type Matched struct {
	Policy string `json:"policy"`
	Rule   int    `json:"rule"`
	// Action is the list: deny, allow or allowWithShadowDeny. A rule that could not be read denies and has no Entry.
	Action string                     `json:"action"`
	Field  string                     `json:"field"`
	Entry  *resources.PermissionMatch `json:"entry,omitempty"`
	// Headers are the header expressions of a TrafficTarget that the request matches, in addition to the entry.
	Headers map[string]string `json:"headers,omitempty"`
	// Decides marks the entry that produced the verdict.
	Decides bool `json:"decides,omitempty"`
}

// ProxyVerdict is the verdict at one of several proxies.
type ProxyVerdict struct {
	Inbound string `json:"inbound"`
	Verdict string `json:"verdict"`
	Policy  string `json:"policy"`
}
