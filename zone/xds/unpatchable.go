package xds

import "strings"

// unpatchable holds the patches whose result the proxy refused, with its error, by the patch's id. They stay out until
// the policy changes or the proxy restarts. Proxies.mu guards it.
type unpatchable map[string]string

// refused reads a proxy's error about resources of a kind, and reports whether patches changed them. If the error names
// no resource, all patches of the kind count.
func (u *unpatchable) refused(s *state, k kind, words string) bool {
	if s == nil || len(s.patched.by[k]) == 0 {
		return false
	}
	named := false
	for _, r := range s.served(k) {
		named = named || strings.Contains(words, r.name)
	}
	found := false
	for name, ids := range s.patched.by[k] {
		if named && !strings.Contains(words, name) {
			continue
		}
		for _, id := range ids {
			if *u == nil {
				*u = unpatchable{}
			}
			if _, known := (*u)[id]; !known {
				(*u)[id], found = strings.SplitN(words, "\n", 2)[0], true
			}
		}
	}
	return found
}
