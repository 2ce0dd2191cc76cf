package resources

// What names in requests are held to. They are those of documents, and of what peers call their own.

// IsName reports whether s can be the name of a resource, a service account or a workload: a DNS-1123 subdomain.
func IsName(s string) bool { return isSubdomain(s) }

// IsMeshName reports whether s can be the name of a mesh, of a peer too.
func IsMeshName(s string) bool { return len(s) <= MaxShortNameBytes && peerMesh.MatchString(s) }

// IsNamespaceName reports whether s can be the name of a namespace: a DNS-1123 label.
func IsNamespaceName(s string) bool { return len(s) <= MaxShortNameBytes && dnsLabel.MatchString(s) }

// IsLabel reports whether key and value have the form of a label.
func IsLabel(key, value string) bool {
	v := &validation{}
	v.labelSyntax(nil, key, value)
	return len(v.problems) == 0
}

// Words for errors about names.
const (
	WantName      = wantSubdomain
	WantNamespace = wantLabel
)
