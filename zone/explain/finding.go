package explain

// Severities of findings.
const (
	// Error is for a policy that does something other than what it states.
	Error = "error"
	// Warning is for a policy that is probably a mistake.
	Warning = "warning"
)

// Finding is something that a policy's author should check.
type Finding struct {
	// Severity is Error or Warning.
	Severity string `json:"severity"`
	// Check is the name of the check, one of Checks.
	Check string `json:"check"`
	// KRI is that of the policy, or of the inbound if the finding is about one. Field is the entry in the policy; empty
	// for the whole policy.
	KRI   string `json:"kri"`
	Field string `json:"field,omitempty"`
	// Message states the problem, Advice the remedy.
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// Names of the checks.
const (
	CheckInvalid         = "invalid"
	CheckShadowed        = "shadowed"
	CheckDuplicate       = "duplicate"
	CheckOpenPrefix      = "open-prefix"
	CheckDenyOnly        = "deny-only"
	CheckHTTPOnTCP       = "http-on-tcp"
	CheckUnknownIdentity = "unknown-identity"
	CheckSelectsNothing  = "selects-nothing"
	CheckPathDeny        = "path-deny"
	CheckNotEnforced     = "not-enforced"
	CheckServerFirst     = "server-first"
	CheckInTheClear      = "in-the-clear"
)

// Check describes what a check looks for.
type Check struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Checks returns all checks of Lint, in the order of their findings for one policy.
func Checks() []Check {
	return []Check{
		{CheckInvalid, "a policy or entry that cannot be enforced as written: it denies more, or allows less, than it says"},
		{CheckShadowed, "an entry that never decides, because a wider one, of its policy or another on the same inbounds, or a deny stands before it"},
		{CheckDuplicate, "an entry that occurs twice, in one list or in two policies on the same inbounds"},
		{CheckOpenPrefix, "an allowed SPIFFE ID prefix that ends inside a segment, so that longer names match too"},
		{CheckDenyOnly, "denies on inbounds that allow nobody"},
		{CheckHTTPOnTCP, "path or method on an inbound where requests cannot be seen"},
		{CheckUnknownIdentity, "a SPIFFE ID, of a trust domain whose proxies are known, that no proxy has"},
		{CheckSelectsNothing, "a policy that selects no proxy"},
		{CheckPathDeny, "a denied path that some applications also serve under spellings that no proxy can recognize"},
		{CheckServerFirst, "an inbound whose application speaks first, and one that is closed because its permissions cannot be judged so early"},
		{CheckInTheClear, "an entry for every identity on an inbound that accepts plaintext clients, which then admits everybody"},
		{CheckNotEnforced, "a policy that is labelled not to be enforced, or an item that has no effect"},
	}
}
