package rbac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// part is one thing that an entry may name, spelled as its field.
type part string

const (
	partIdentity part = "spiffeId"
	partSNI      part = "sni"
	partPath     part = "path"
	partMethod   part = "method"
	// partNone is for an entry that names nothing.
	partNone part = ""
)

// fault says why a part of an entry cannot be enforced. Applying refuses such entries; a stored one came from a peer.
type fault struct {
	part   part
	reason string
}

type faults []fault

func (f faults) has(p part) bool {
	return slices.ContainsFunc(f, func(x fault) bool { return x.part == p })
}

// faultsOf judges one entry. Envoy refuses a whole configuration for an empty string in it, so nothing empty passes.
func faultsOf(m *resources.PermissionMatch) faults {
	var out faults
	if m.SpiffeID == nil && m.SNI == nil && m.Path == nil && len(m.Method) == 0 {
		return faults{{partNone, "the entry names nothing to match"}}
	}
	if m.SpiffeID != nil {
		if reason := identityFault(m.SpiffeID); reason != "" {
			out = append(out, fault{partIdentity, reason})
		}
	}
	if m.SNI != nil && (m.SNI.Type != resources.MatchExact || m.SNI.Value == "") {
		out = append(out, fault{partSNI, "want type Exact and a server name"})
	}
	if m.Path != nil {
		if reason := pathFault(m.Path); reason != "" {
			out = append(out, fault{partPath, reason})
		}
	}
	switch {
	case m.Method != nil && len(m.Method) == 0:
		out = append(out, fault{partMethod, "the list is empty"})
	case slices.ContainsFunc(m.Method, func(s string) bool { return s == "" || s != strings.ToUpper(s) }):
		out = append(out, fault{partMethod, "methods are spelled in capitals"})
	}
	return out
}

func identityFault(m *resources.SpiffeIDMatch) string {
	switch {
	case m.Type != resources.MatchExact && m.Type != resources.MatchPrefix:
		return fmt.Sprintf("type %q is not Exact or Prefix", m.Type)
	case !strings.HasPrefix(m.Value, anySpiffeID):
		return "a SPIFFE ID begins with " + anySpiffeID
	}
	return ""
}

// Fault says what keeps an entry from being enforced as it is written, on any inbound; it is empty for a good one.
func Fault(m *resources.PermissionMatch) string {
	var out []string
	for _, f := range faultsOf(m) {
		if f.part == partNone {
			out = append(out, f.reason)
		} else {
			out = append(out, string(f.part)+" is not valid: "+f.reason)
		}
	}
	return strings.Join(out, "; ")
}
