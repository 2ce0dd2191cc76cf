package inspect

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/causeway-mesh/causeway/resources"
)

// HTTPMatch is a list of matches of a route with its hash. Older clients refer to the list by the hash, as in Kuma's
// inspect API.
type HTTPMatch struct {
	Hash  string            `json:"hash"`
	Match []json.RawMessage `json:"match"`
}

// httpMatches returns the matches of the MeshHTTPRoutes among rules, each list once.
func httpMatches(rules []TypeRules) []HTTPMatch {
	out := []HTTPMatch{}
	seen := map[string]bool{}
	for i := range rules {
		if rules[i].Type != resources.TypeMeshHTTPRoute {
			continue
		}
		for _, rule := range rules[i].ToResourceRules {
			for _, match := range matchesIn(rule.Conf) {
				if !seen[match.Hash] {
					seen[match.Hash] = true
					out = append(out, match)
				}
			}
		}
	}
	return out
}

// matchesIn returns the matches in the conf of a route. A conf of another form has none.
func matchesIn(conf json.RawMessage) []HTTPMatch {
	var route struct {
		Rules []struct {
			Matches []json.RawMessage `json:"matches"`
		} `json:"rules"`
	}
	if json.Unmarshal(conf, &route) != nil {
		return nil
	}
	var out []HTTPMatch
	for _, rule := range route.Rules {
		raw, err := json.Marshal(rule.Matches)
		if len(rule.Matches) == 0 || err != nil {
			continue
		}
		sum := sha256.Sum256(raw)
		out = append(out, HTTPMatch{Hash: base64.StdEncoding.EncodeToString(sum[:]), Match: rule.Matches})
	}
	return out
}
