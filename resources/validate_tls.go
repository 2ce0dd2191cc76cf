package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// tls checks a MeshTLS. Versions and ciphers concern both ends of a connection, so a policy for a part of the mesh
// cannot set them.
func (v *validation) tls(c *TLSConf, at *fieldPath) {
	if v.peer {
		return // the code that uses a peer's conf decides what it supports
	}
	if c.TLSVersion == nil && len(c.TLSCiphers) == 0 && c.Mode == nil {
		v.fail(at, "is empty: give tlsVersion, tlsCiphers or mode")
	}
	if c.Mode != nil && !slices.Contains(tlsModes, *c.Mode) {
		v.fail(at.field("mode"), "want one of %s, got %q", strings.Join(tlsModes, ", "), shorten(*c.Mode))
	}
	p, err := SpecAs[Policy](v.resource)
	for name, set := range map[string]bool{"tlsVersion": c.TLSVersion != nil, "tlsCiphers": len(c.TLSCiphers) > 0} {
		if set && err == nil && p.TargetRef.KindOrMesh() != KindMesh {
			v.fail(at.field(name), "applies to both ends of a connection: want a policy whose targetRef is of kind Mesh")
		}
	}
	if c.TLSVersion != nil {
		for name, version := range map[string]string{"min": c.TLSVersion.Min, "max": c.TLSVersion.Max} {
			if version != "" && !slices.Contains(tlsVersions, version) {
				v.fail(at.field("tlsVersion").field(name), "want one of %s, got %q", strings.Join(tlsVersions, ", "),
					shorten(version))
			}
		}
		if c.Oldest() > c.Newest() {
			v.fail(at.field("tlsVersion").field("min"), "want no newer version than max, %s, got %s", c.Newest(), c.Oldest())
		}
	}
	for i, cipher := range c.TLSCiphers {
		switch {
		case !slices.Contains(tlsCiphers, cipher):
			v.fail(at.field("tlsCiphers").item(i), "want one of %s, got %q", strings.Join(tlsCiphers, ", "), shorten(cipher))
		case slices.Contains(c.TLSCiphers[:i], cipher):
			v.fail(at.field("tlsCiphers").item(i), "is already there")
		}
	}
	if _, err := c.Ciphers(); err != nil && len(v.problems) == 0 {
		v.fail(at.field("tlsCiphers"), "%v", err)
	}
}

// Oldest is the minimum version, TLS12 or TLS13. Older and unknown versions count as TLS12.
func (c *TLSConf) Oldest() string {
	if c.TLSVersion != nil && c.TLSVersion.Min == TLS13 {
		return TLS13
	}
	return TLS12
}

// Newest is the maximum version, TLS12 or TLS13. Older versions count as TLS12.
func (c *TLSConf) Newest() string {
	if c.TLSVersion == nil || slices.Contains([]string{"", TLSAuto, TLS13}, c.TLSVersion.Max) {
		return TLS13
	}
	return TLS12
}

// Ciphers returns the ciphers of TLS 1.2. It fails if some are unknown, or if they allow no connection.
func (c *TLSConf) Ciphers() ([]string, error) {
	usable := len(c.TLSCiphers) == 0
	for _, cipher := range c.TLSCiphers {
		if !slices.Contains(tlsCiphers, cipher) {
			return nil, fmt.Errorf("%q is not one of %s", shorten(cipher), strings.Join(tlsCiphers, ", "))
		}
		usable = usable || strings.HasPrefix(cipher, "ECDHE-ECDSA-")
	}
	if !usable && c.Newest() == TLS12 {
		return nil, errors.New(
			"identities have ECDSA keys, so no connection would succeed: name an ECDHE-ECDSA cipher too")
	}
	return c.TLSCiphers, nil
}

// Unsupported returns a reason for each value that only a peer's conf can have and that proxies treat as another.
func (c *TLSConf) Unsupported() (out []string) {
	if c.Mode != nil && !slices.Contains(tlsModes, *c.Mode) {
		out = append(out, fmt.Sprintf("unknown mode %q, treated as %s", shorten(*c.Mode), TLSStrict))
	}
	if c.TLSVersion != nil {
		for _, version := range []string{c.TLSVersion.Min, c.TLSVersion.Max} {
			if version != "" && !slices.Contains(tlsVersions, version) {
				out = append(out, fmt.Sprintf("unsupported version %q, treated as %s", shorten(version), TLS12))
			}
		}
	}
	if c.Oldest() > c.Newest() {
		out = append(out, "the minimum version is newer than the maximum, and only the minimum applies")
	}
	return out
}

// ciphersWithoutUse warns of ciphers with a version that selects its own.
func ciphersWithoutUse(raw json.RawMessage, at *fieldPath) []string {
	var conf TLSConf
	if json.Unmarshal(raw, &conf) != nil || len(conf.TLSCiphers) == 0 || conf.Oldest() != TLS13 {
		return nil
	}
	return []string{fmt.Sprintf("%s: TLS 1.3 has its own ciphers, so these have no effect", at.field("tlsCiphers"))}
}
