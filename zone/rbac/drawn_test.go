package rbac_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

func drawMatch() *rapid.Generator[resources.PermissionMatch] {
	return rapid.Custom(func(t *rapid.T) resources.PermissionMatch {
		var m resources.PermissionMatch
		if rapid.IntRange(0, 3).Draw(t, "has identity") > 0 {
			kind := rapid.SampledFrom([]string{resources.MatchExact, resources.MatchPrefix, resources.MatchPrefix,
				"Other"}).Draw(t, "kind")
			m.SpiffeID = &resources.SpiffeIDMatch{Type: kind,
				Value: rapid.SampledFrom(append(identities, "", "spif")).Draw(t, "identity")}
		}
		if rapid.IntRange(0, 4).Draw(t, "has sni") == 0 {
			m.SNI = &resources.SNIMatch{Type: resources.MatchExact, Value: rapid.SampledFrom(serverNames).Draw(t, "sni")}
		}
		if rapid.Bool().Draw(t, "has path") {
			m.Path = drawPathMatch().Draw(t, "path")
		}
		if rapid.IntRange(0, 2).Draw(t, "has method") == 0 {
			m.Method = rapid.SliceOfN(rapid.SampledFrom(append(methods, "")), 0, 2).Draw(t, "method")
		}
		return m
	})
}

func drawPathMatch() *rapid.Generator[*resources.PathMatch] {
	return rapid.Custom(func(t *rapid.T) *resources.PathMatch {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2:
			return &resources.PathMatch{Type: resources.MatchRegularExpression,
				Value: rapid.SampledFrom(expressions).Draw(t, "expression")}
		case 3, 4, 5:
			return &resources.PathMatch{Type: resources.MatchExact, Value: rapid.SampledFrom(paths).Draw(t, "path")}
		case 6:
			return &resources.PathMatch{Type: resources.MatchPrefix,
				Value: rapid.SampledFrom([]string{"", "a", "/a?x", "/a/../b", "//a"}).Draw(t, "bad")}
		}
		return &resources.PathMatch{Type: resources.MatchPrefix, Value: rapid.SampledFrom(paths).Draw(t, "path")}
	})
}

func drawRules() *rapid.Generator[matching.Rules] {
	return rapid.Custom(func(t *rapid.T) matching.Rules {
		var rules matching.Rules
		for i := range rapid.IntRange(0, 5).Draw(t, "rules") {
			r := matching.Rule{Origin: resources.KRI{Short: "mtp", Mesh: "default", Name: fmt.Sprintf("p%d", i)},
				Made: &matching.Made{}}
			list := func(name string, most int) []resources.PermissionMatch {
				return rapid.SliceOfN(drawMatch(), 0, most).Draw(t, name)
			}
			if r.Closed = rapid.IntRange(0, 30).Draw(t, "closed") == 0; !r.Closed {
				r.Conf = resources.PermissionConf{Deny: list("deny", 2), AllowWithShadowDeny: list("shadow", 1),
					Allow: list("allow", 3)}
			}
			if rapid.IntRange(0, 4).Draw(t, "has headers") == 0 {
				r.Headers = rapid.SliceOfN(drawHeaderMatch(), 1, 2).Draw(t, "headers")
			}
			rules.Items = append(rules.Items, r)
		}
		return rules
	})
}

func drawHeaderMatch() *rapid.Generator[matching.HeaderMatch] {
	return rapid.Custom(func(t *rapid.T) matching.HeaderMatch {
		return matching.HeaderMatch{
			Name:       rapid.SampledFrom([]string{"x-a", "X-B"}).Draw(t, "name"),
			Expression: rapid.SampledFrom([]string{"a", "a|b", ".*", "a.*", "("}).Draw(t, "expression"),
		}
	})
}

// wellFormed completes the beginning of a SPIFFE ID.
func wellFormed(id string) string {
	rest := strings.Trim(strings.TrimPrefix(id, "spiffe://"), "/")
	for strings.Contains(rest, "//") {
		rest = strings.ReplaceAll(rest, "//", "/")
	}
	if !strings.Contains(rest, "/") {
		rest += "/w"
	}
	if rest[0] == '/' {
		rest = "a" + rest
	}
	return "spiffe://" + rest
}

// drawSAN draws a URI SAN, mostly a valid one.
func drawSAN(of *rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		id := of.Draw(t, "identity")
		if rapid.IntRange(0, 5).Draw(t, "as it is") == 0 {
			return id + rapid.SampledFrom([]string{"", "", "/..", "/./x", "?", "//x"}).Draw(t, "end")
		}
		return wellFormed(id)
	})
}

func drawRequest() *rapid.Generator[rbac.Request] {
	return rapid.Custom(func(t *rapid.T) rbac.Request {
		req := rbac.Request{
			Protocol: rapid.SampledFrom([]matching.Protocol{matching.HTTP, matching.HTTP, matching.TCP}).Draw(t, "protocol"),
			SNI:      rapid.SampledFrom(serverNames).Draw(t, "sni"),
		}
		if rapid.IntRange(0, 9).Draw(t, "identified") > 0 {
			req.URISANs = []string{drawSAN(rapid.SampledFrom(identities)).Draw(t, "san")}
		}
		if rapid.IntRange(0, 19).Draw(t, "second") == 0 {
			req.URISANs = append(req.URISANs, rapid.SampledFrom(append(identities, "x:y,z")).Draw(t, "second san"))
		}
		if req.Protocol == matching.HTTP {
			req.Method = rapid.SampledFrom(methods).Draw(t, "method")
			req.Headers = map[string]string{}
			for _, name := range []string{"x-a", "x-b"} {
				if rapid.Bool().Draw(t, name) {
					req.Headers[name] = rapid.SampledFrom([]string{"", "a", "ab", "b"}).Draw(t, "value")
				}
			}
			req.Path = rapid.SampledFrom(paths).Draw(t, "path") + rapid.SampledFrom(queries).Draw(t, "query")
		}
		return req
	})
}

// crossed draws some requests and combines each with the paths and methods of others, because drawing is slow.
func crossed(rt *rapid.T, requests *rapid.Generator[rbac.Request]) []rbac.Request {
	drawn := make([]rbac.Request, 40)
	for i := range drawn {
		drawn[i] = requests.Draw(rt, "request")
	}
	var out []rbac.Request
	for i := range perSet {
		req, path, method := drawn[i%len(drawn)], drawn[i*7/len(drawn)%len(drawn)], drawn[i*11%len(drawn)]
		if req.Protocol == matching.HTTP && path.Protocol == matching.HTTP && method.Protocol == matching.HTTP {
			req.Path, req.Method = path.Path, method.Method
		}
		out = append(out, req)
	}
	return out
}

// drawIdentity draws from a tree of identities in which any node is also a prefix.
func drawIdentity() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		id := "spiffe://"
		for range rapid.IntRange(1, 4).Draw(t, "depth") {
			id += rapid.SampledFrom([]string{"a", "b", "ab", "a/"}).Draw(t, "segment") +
				rapid.SampledFrom([]string{"/", ""}).Draw(t, "slash")
		}
		return id
	})
}

// drawManyRules draws long rules: many entries on identity alone, some with conditions, few for every client.
func drawManyRules() *rapid.Generator[matching.Rules] {
	entry := rapid.Custom(func(t *rapid.T) resources.PermissionMatch {
		if rapid.IntRange(0, 2).Draw(t, "any kind") == 0 {
			return drawMatch().Draw(t, "match")
		}
		kind := rapid.SampledFrom([]string{resources.MatchExact, resources.MatchPrefix}).Draw(t, "kind")
		m := resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{Type: kind,
			Value: drawIdentity().Draw(t, "identity")}}
		if rapid.IntRange(0, 3).Draw(t, "has method") == 0 {
			m.Method = []string{rapid.SampledFrom(methods[:3]).Draw(t, "method")}
		}
		return m
	})
	return rapid.Custom(func(t *rapid.T) matching.Rules {
		var confs []resources.PermissionConf
		for range rapid.IntRange(1, 40).Draw(t, "rules") {
			list := func(name string, most int) []resources.PermissionMatch {
				return rapid.SliceOfN(entry, 0, most).Draw(t, name)
			}
			confs = append(confs, resources.PermissionConf{Deny: list("deny", 2),
				AllowWithShadowDeny: list("shadow", 2), Allow: list("allow", 6)})
		}
		return rulesOf(confs...)
	})
}
