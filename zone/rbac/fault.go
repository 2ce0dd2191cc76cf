package rbac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// part is one field that an entry may set, under the field's name.
type part string

const (
	partIdentity part = "spiffeId"
	partSNI      part = "sni"
	partPath     part = "path"
	partMethod   part = "method"
	// partNone stands for an entry that sets no field.
	partNone part = ""
)

// fault is the reason why a part of an entry cannot be enforced. The server refuses such entries when they are applied;
// a stored one came from a peer.
type fault struct {
	part   part
	reason string
}

type faults []fault

func (f faults) has(p part) bool {
	return slices.ContainsFunc(f, func(x fault) bool { return x.part == p })
}

// faultsOf checks one entry. Envoy refuses a whole configuration for one empty string, so no empty string passes.
func faultsOf(m *resources.PermissionMatch) faults {
	var out faults
	if m.SpiffeID == nil && m.SNI == nil && m.Path == nil && len(m.Method) == 0 {
		return faults{{partNone, "the entry has nothing to match"}}
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
		out = append(out, fault{partMethod, "methods are in capitals"})
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

// Fault returns the reasons why an entry cannot be enforced as written on any inbound. It is empty for a valid entry.
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
