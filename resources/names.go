package resources

// The rules for names in requests. They are the rules for names in documents and for names that peers use.

// IsName reports whether s can be the name of a resource, a service account or a workload: a DNS-1123 subdomain.
func IsName(s string) bool { return isSubdomain(s) }

// IsMeshName reports whether s can be the name of a mesh, including a peer's.
func IsMeshName(s string) bool { return len(s) <= MaxShortNameBytes && peerMesh.MatchString(s) }

// IsNamespaceName reports whether s can be the name of a namespace: a DNS-1123 label.
func IsNamespaceName(s string) bool { return len(s) <= MaxShortNameBytes && dnsLabel.MatchString(s) }

// IsLabel reports whether key and value are a valid label.
func IsLabel(key, value string) bool {
	v := &validation{}
	v.labelSyntax(nil, key, value)
	return len(v.problems) == 0
}

// Descriptions of valid names, for errors.
const (
	WantName      = wantSubdomain
	WantNamespace = wantLabel
)
