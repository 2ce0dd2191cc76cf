package resources

import "strings"

// MeshIdentity gives the Dataplanes that it selects their SPIFFE IDs, and names the issuer of their certificates.
// Source: the MeshIdentity of Kuma.
type MeshIdentity struct {
	// Selector is absent in one that selects nothing.
	Selector *MeshIdentitySelector `json:"selector,omitempty"`
	SpiffeID *SpiffeIDTemplates    `json:"spiffeID,omitempty" alias:"spiffeId"`
	Provider IdentityProvider      `json:"provider"`
}

// MeshIdentitySelector selects Dataplanes. Without Dataplane it selects none.
type MeshIdentitySelector struct {
	Dataplane *LabelSelector `json:"dataplane,omitempty"`
}

// SpiffeIDTemplates are the two parts of a SPIFFE ID; see IdentityTemplate. Each may be absent.
type SpiffeIDTemplates struct {
	TrustDomain string `json:"trustDomain,omitempty"`
	Path        string `json:"path,omitempty"`
}

// Types of IdentityProvider.
const (
	// ProviderBundled issues certificates from the zone itself.
	ProviderBundled = "Bundled"
	// ProviderSpire issues certificates from the SPIRE agent next to each proxy.
	ProviderSpire = "Spire"
)

// IdentityProvider configures the issuer of the certificates.
type IdentityProvider struct {
	Type    string           `json:"type"`
	Bundled *BundledProvider `json:"bundled,omitempty"`
	Spire   *SpireProvider   `json:"spire,omitempty"`
}

// Values of BundledProvider.MeshTrustCreation. Absent means MeshTrustEnabled.
const (
	MeshTrustEnabled  = "Enabled"
	MeshTrustDisabled = "Disabled"
)

// BundledProvider makes each zone sign with an authority of its own: a generated one, or CA.
type BundledProvider struct {
	// MeshTrustCreation reports whether zones publish their authorities by themselves.
	MeshTrustCreation string `json:"meshTrustCreation,omitempty"`
	// InsecureAllowSelfSigned lets CA be a root.
	InsecureAllowSelfSigned bool                   `json:"insecureAllowSelfSigned,omitempty"`
	Autogenerate            *IdentityAutogenerate  `json:"autogenerate,omitempty"`
	CA                      *ProvidedCA            `json:"ca,omitempty"`
	CertificateParameters   *CertificateParameters `json:"certificateParameters,omitempty"`
}

// IdentityAutogenerate configures whether the zone generates its authority.
type IdentityAutogenerate struct {
	Enabled bool `json:"enabled"`
}

// ProvidedCA is an authority from the operator: the sources of its chain and its key.
type ProvidedCA struct {
	Certificate *SecureDataSource `json:"certificate"`
	PrivateKey  *SecureDataSource `json:"privateKey"`
}

// Types of SecureDataSource.
const (
	DataSourceFile   = "File"
	DataSourceInline = "InsecureInline"
)

// SecureDataSource is the source of a value.
type SecureDataSource struct {
	Type           string           `json:"type"`
	File           *FileSource      `json:"file,omitempty"`
	InsecureInline *InlineSource    `json:"insecureInline,omitempty"`
	EnvVar         *EnvVarSource    `json:"envVar,omitempty"`
	SecretRef      *SecretReference `json:"secretRef,omitempty"`
}

// FileSource is a file on the zone's machine.
type FileSource struct {
	Path string `json:"path"`
}

// InlineSource is a value in plain text.
type InlineSource struct {
	Value string `json:"value"`
}

// EnvVarSource is an environment variable of the zone.
type EnvVarSource struct {
	Name string `json:"name"`
}

// SecretReference names a secret.
type SecretReference struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name"`
}

// CertificateParameters configure the certificates. Expiry is a duration.
type CertificateParameters struct {
	Expiry string `json:"expiry,omitempty"`
}

// SpireProvider configures how proxies reach their agent.
type SpireProvider struct {
	Agent *SpireAgent `json:"agent,omitempty"`
}

// SpireAgent configures the agent. Timeout is a duration: how long a proxy waits for its first certificate.
type SpireAgent struct {
	Timeout string `json:"timeout,omitempty"`
}

// Defaults of SpiffeIDTemplates. There are two path defaults. The first applies if the Dataplane has a namespace and a
// service account.
const (
	DefaultTrustDomainTemplate  = "{{ .Mesh }}.{{ .Zone }}" + TrustDomainSuffix
	DefaultAccountPathTemplate  = "/ns/{{ .Namespace }}/sa/{{ .ServiceAccount }}"
	DefaultWorkloadPathTemplate = "/workload/{{ .Workload }}"
)

// Dataplanes returns the labels by which the MeshIdentity selects Dataplanes. ok is false if it selects none.
func (m *MeshIdentity) Dataplanes() (labels map[string]string, ok bool) {
	if m.Selector == nil || m.Selector.Dataplane == nil {
		return nil, false
	}
	return m.Selector.Dataplane.MatchLabels, true
}

// TrustDomainIn returns the trust domain of the selected Dataplanes in a zone. Errors name the template.
func (m *MeshIdentity) TrustDomainIn(mesh, zone string) (string, error) {
	if m.SpiffeID == nil || m.SpiffeID.TrustDomain == "" {
		return ZoneTrustDomain(mesh, zone), nil
	}
	template, err := ParseIdentityTemplate(m.SpiffeID.TrustDomain, TrustDomainVariables())
	if err != nil {
		return "", err
	}
	return template.Render(func(variable string) string { return map[string]string{"Mesh": mesh, "Zone": zone}[variable] }, nil)
}

// PathTemplate returns the text of the path template. account selects between the two defaults.
func (m *MeshIdentity) PathTemplate(account bool) string {
	switch {
	case m.SpiffeID != nil && m.SpiffeID.Path != "":
		return m.SpiffeID.Path
	case account:
		return DefaultAccountPathTemplate
	}
	return DefaultWorkloadPathTemplate
}

// IdentityLabels returns the labels that determine the identity of a Dataplane: those in selectors and in paths,
// without those that an author cannot choose. LabelWorkload also stands for the name of a Dataplane that has no such
// label.
func IdentityLabels(list []*MeshIdentity) map[string]bool {
	out := map[string]bool{}
	for _, m := range list {
		labels, ok := m.Dataplanes()
		if !ok {
			continue
		}
		for key := range labels {
			out[key] = true
		}
		if m.SpiffeID == nil || m.SpiffeID.Path == "" {
			continue // the default templates contain no labels
		}
		template, err := ParseIdentityTemplate(m.SpiffeID.Path, PathVariables())
		if err != nil {
			continue // it issues no identities
		}
		for _, part := range template.parts {
			switch {
			case part.label != "":
				out[part.label] = true
			case part.variable == "Workload":
				out[LabelWorkload] = true
			}
		}
	}
	if out[LabelDisplayName] {
		out[LabelWorkload] = true
	}
	for _, computed := range []string{LabelMesh, LabelOrigin, LabelZone, LabelDisplayName, LabelEnv, LabelNamespace} {
		delete(out, computed)
	}
	return out
}

// ServiceAccountPath returns the path of a service account's identities. ok is true only if the path depends on nothing
// but the account's namespace and name, each a whole segment. Otherwise other workloads may share the path.
func (m *MeshIdentity) ServiceAccountPath(namespace, account string) (path string, ok bool) {
	if _, selects := m.Dataplanes(); !selects {
		return "", false
	}
	template, err := ParseIdentityTemplate(m.PathTemplate(true), PathVariables())
	if err != nil {
		return "", false
	}
	values := map[string]string{"Namespace": namespace, "ServiceAccount": account}
	for i, part := range template.parts {
		if part.label != "" || part.variable == "Workload" || part.variable == "TrustDomain" {
			return "", false
		}
		if part.variable == "" {
			continue
		}
		before := i > 0 && strings.HasSuffix(template.parts[i-1].text, "/")
		after := i == len(template.parts)-1 || strings.HasPrefix(template.parts[i+1].text, "/")
		if !before || !after {
			return "", false
		}
		delete(values, part.variable)
	}
	if len(values) > 0 {
		return "", false
	}
	path, err = template.Render(func(v string) string { return map[string]string{"Namespace": namespace, "ServiceAccount": account}[v] }, nil)
	return path, err == nil
}
