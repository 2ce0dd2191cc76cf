package resources

import (
	"path"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Bounds of the lifetime of a MeshIdentity's certificates. Proxies trust an authority that no longer signs for the
// longest of these lifetimes.
const (
	minIdentityExpiry = time.Minute
	maxIdentityExpiry = 24 * time.Hour
	maxSpireTimeout   = time.Minute
)

func (v *validation) meshIdentity(m *MeshIdentity) {
	at := v.specPath()
	if ids := m.SpiffeID; ids != nil {
		v.trustDomainTemplate(m, at.field("spiffeID").field("trustDomain"))
		v.pathTemplate(ids.Path, at.field("spiffeID").field("path"))
	}
	provider := at.field("provider")
	switch m.Provider.Type {
	case ProviderBundled:
		if m.Provider.Spire != nil {
			v.fail(provider.field("spire"), "does not belong to a provider of type %s", ProviderBundled)
		}
		if m.Provider.Bundled != nil {
			v.bundledProvider(m.Provider.Bundled, provider.field("bundled"))
		}
	case ProviderSpire:
		if m.Provider.Bundled != nil {
			v.fail(provider.field("bundled"), "does not belong to a provider of type %s", ProviderSpire)
		}
		if s := m.Provider.Spire; s != nil && s.Agent != nil {
			v.durationWithin(s.Agent.Timeout, time.Millisecond, maxSpireTimeout,
				provider.field("spire").field("agent").field("timeout"))
		}
	default:
		v.fail(provider.field("type"), "want %s or %s, got %q", ProviderBundled, ProviderSpire, shorten(m.Provider.Type))
	}
}

// trustDomainTemplate checks that a zone's own MeshIdentity names only trust domains of that zone, as for its
// MeshTrusts.
func (v *validation) trustDomainTemplate(m *MeshIdentity, at *fieldPath) {
	zone, sample := v.home.Zone, v.home.Zone
	if sample == "" {
		sample = "zone"
	}
	domain, err := m.TrustDomainIn(v.resource.Mesh, sample)
	if err != nil {
		v.fail(at, "%v", err)
		return
	}
	switch parsed, err := spiffeid.TrustDomainFromString(domain); {
	case err != nil || parsed.Name() != domain:
		v.fail(at, "results in %q, which is not a trust domain: want lower-case letters, digits, '.', '-' and '_'",
			shorten(domain))
	case zone != "" && !IsTrustDomainOf(domain, zone):
		v.fail(at, "zone %s may only speak for *.%s%s, not for %s: write it on the global", zone, zone,
			TrustDomainSuffix, domain)
	}
}

// pathTemplate renders the template with values that any Dataplane may have, and checks the result.
func (v *validation) pathTemplate(text string, at *fieldPath) {
	if text == "" {
		return
	}
	template, err := ParseIdentityTemplate(text, PathVariables())
	if err != nil {
		v.fail(at, "%v", err)
		return
	}
	value := func(string) string { return "x" }
	rendered, err := template.Render(value, value)
	if err == nil {
		_, err = spiffeid.FromPath(spiffeid.RequireTrustDomainFromString("x"), rendered)
	}
	if err != nil || rendered == "" {
		v.fail(at, "does not result in the path of a SPIFFE ID: want one that begins with / and has no empty segment")
	}
}

func (v *validation) bundledProvider(b *BundledProvider, at *fieldPath) {
	if c := b.MeshTrustCreation; c != "" && c != MeshTrustEnabled && c != MeshTrustDisabled {
		v.fail(at.field("meshTrustCreation"), "want %s or %s, got %q", MeshTrustEnabled, MeshTrustDisabled, shorten(c))
	}
	if b.CertificateParameters != nil {
		v.durationWithin(b.CertificateParameters.Expiry, minIdentityExpiry, maxIdentityExpiry,
			at.field("certificateParameters").field("expiry"))
	}
	made := b.Autogenerate == nil || b.Autogenerate.Enabled
	switch {
	case b.CA != nil && b.Autogenerate != nil && made:
		v.fail(at.field("ca"), "cannot be combined with autogenerate.enabled: give the zone a CA, or let it make one")
	case b.CA == nil && !made:
		v.fail(at.field("ca"), "is required where autogenerate is not enabled")
	case b.CA != nil:
		v.providedSource(b.CA.Certificate, at.field("ca").field("certificate"))
		v.providedSource(b.CA.PrivateKey, at.field("ca").field("privateKey"))
	}
}

// providedSource checks the source of a CA. It refuses inline text, because a resource, with the key in it, would be
// synced and backed up.
func (v *validation) providedSource(s *SecureDataSource, at *fieldPath) {
	switch {
	case s == nil:
		v.fail(at, "is required")
	case s.Type == DataSourceInline:
		v.fail(at.field("type"), "everyone who can read the resource could read %s: want %s, or give the CA to the zone with causewayctl keys import and leave ca out", DataSourceInline, DataSourceFile)
	case s.Type != DataSourceFile:
		v.fail(at.field("type"), "want %s, got %q; or give the CA to the zone with causewayctl keys import and leave ca out", DataSourceFile, shorten(s.Type))
	case s.File == nil || !path.IsAbs(s.File.Path) || path.Clean(s.File.Path) != s.File.Path ||
		strings.ContainsRune(s.File.Path, 0):
		v.fail(at.field("file").field("path"), "want the absolute path of a file on the machine of each zone")
	}
}

// durationWithin accepts an absent duration, or one within bounds. A duration from a peer may exceed them and is
// clamped where it is used.
func (v *validation) durationWithin(text string, least, most time.Duration, at *fieldPath) {
	if text == "" {
		return
	}
	if d, err := time.ParseDuration(text); err != nil || !v.peer && (d < least || d > most) {
		v.fail(at, "want a duration from %s to %s, got %q", least, most, shorten(text))
	}
}
