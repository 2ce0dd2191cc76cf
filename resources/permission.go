package resources

import "encoding/json"

// PermissionConf is the `default` of a MeshTrafficPermission rule. An empty one is valid and adds nothing.
// Source: seed 000, option 1.
type PermissionConf struct {
	Deny                []PermissionMatch `json:"deny,omitempty"`
	AllowWithShadowDeny []PermissionMatch `json:"allowWithShadowDeny,omitempty"`
	Allow               []PermissionMatch `json:"allow,omitempty"`
}

// PermissionMatch is one entry of a list. All of its fields must match, and it has at least one field.
type PermissionMatch struct {
	// SpiffeID also decodes from "spiffeID", the spelling of existing control planes.
	SpiffeID *SpiffeIDMatch `json:"spiffeId,omitempty" alias:"spiffeID"`
	SNI      *SNIMatch      `json:"sni,omitempty"`
	Path     *PathMatch     `json:"path,omitempty"`
	// Method is one HTTP method or a list of them.
	Method Methods `json:"method,omitempty"`
}

// Match types. Prefix is a string prefix in a SpiffeIDMatch and a prefix by segment in a PathMatch.
const (
	MatchExact             = "Exact"
	MatchPrefix            = "Prefix"
	MatchRegularExpression = "RegularExpression"
)

// SpiffeIDMatch compares the client's SPIFFE ID. Type is Exact or Prefix.
type SpiffeIDMatch struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// SNIMatch compares the server name of the TLS handshake. Type is Exact.
type SNIMatch struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// PathMatch compares the path of a request, without its query. Type is Exact, Prefix or RegularExpression (RE2, whole
// path).
type PathMatch struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// Methods is a list of HTTP methods that also decodes from a single string.
type Methods []string

// UnmarshalJSON accepts "GET" and ["GET", "HEAD"].
func (m *Methods) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*m = Methods{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(m))
}

// PermissionAction is the `default` of a MeshTrafficPermission's `from` entry, the older form.
type PermissionAction struct {
	Action string `json:"action"`
}

// Values of PermissionAction.Action.
const (
	ActionAllow               = "Allow"
	ActionDeny                = "Deny"
	ActionAllowWithShadowDeny = "AllowWithShadowDeny"
)

// NeedsHTTP reports whether the entry can be evaluated only on an HTTP request.
func (m *PermissionMatch) NeedsHTTP() bool { return m.Path != nil || len(m.Method) > 0 }
