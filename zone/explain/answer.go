package explain

import "github.com/causeway-mesh/causeway/resources"

// Verdicts, as they stand in answers, tests and reports.
const (
	Allow = "allow"
	Deny  = "deny"
)

// nobody decides what Envoy refuses before it asks.
const nobody = "envoy"

// Answer is what happens to a request, and why.
type Answer struct {
	// Verdict is Allow or Deny.
	Verdict string `json:"verdict"`
	// Policy is the KRI of the policy that decided, or the name of a decision that no policy made: "default",
	// "multiple-uri-sans", "malformed-uri-san", or "envoy" for a request that is refused before rules are asked.
	Policy string `json:"policy"`
	// Rule is the place among the policy's rules, and Field the entry in it that decided, as a path in the policy. Without a
	// policy they are -1 and empty.
	Rule   int    `json:"rule"`
	Field  string `json:"field,omitempty"`
	Reason string `json:"reason"`
	// Shadow is what would happen if each allowWithShadowDeny were a deny; absent where that is the same.
	Shadow *Shadow `json:"shadow,omitempty"`
	// Inbound is the KRI of the inbound that was judged, with its name or port at the end. Protocol is http or tcp.
	Inbound  string `json:"inbound"`
	Protocol string `json:"protocol"`
	// Request is what the rules were asked about.
	Request Request `json:"request"`
	// Matched are all entries that the request meets, in the order in which they are asked; the first decides.
	Matched []Matched `json:"matched"`
	// Would says what would change the verdict.
	Would []string `json:"would,omitempty"`
	// Warnings are what else should be known: policies that do not hold here as written, and clients that cannot connect.
	Warnings []string `json:"warnings,omitempty"`
	// Proxies are all that the question means, where it means several. The answer is that of the first that denies, else of
	// the first.
	Proxies []ProxyVerdict `json:"proxies,omitempty"`
	// LeftOut counts what is not shown, because who asks may not read it: policies that hold on the inbound, and Dataplanes that the
	// question may mean too. A policy among them that decides is called Hidden.
	LeftOut int `json:"leftOut,omitempty"`
}

// Allowed reports whether the request gets through.
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

// Matched is one entry that a request meets.
type Matched struct {
	Policy string `json:"policy"`
	Rule   int    `json:"rule"`
	// Action is the list: deny, allow or allowWithShadowDeny. A rule that could not be read denies and has no Entry.
	Action string                     `json:"action"`
	Field  string                     `json:"field"`
	Entry  *resources.PermissionMatch `json:"entry,omitempty"`
	// Headers are expressions that the request's headers match, which a TrafficTarget asks for beside its entries.
	Headers map[string]string `json:"headers,omitempty"`
	// Decides marks the entry that made the verdict.
	Decides bool `json:"decides,omitempty"`
}

// ProxyVerdict is the verdict at one of several proxies.
type ProxyVerdict struct {
	Inbound string `json:"inbound"`
	Verdict string `json:"verdict"`
	Policy  string `json:"policy"`
}
