package resources

import (
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/resources/reach"
)

// maxPassthroughMatches bounds the matches of one policy.
const maxPassthroughMatches = 256

func (v *validation) passthrough(c *PassthroughConf, at *fieldPath) {
	if v.peer {
		return // an invalid form is a problem of the proxies
	}
	if problem := c.CheckMode(); problem != "" {
		v.fail(at.field("passthroughMode"), "%s", problem)
	}
	list := at.field("appendMatch")
	switch {
	case c.PassthroughMode == "" && len(c.AppendMatch) == 0:
		v.fail(at, "is empty: give passthroughMode, or appendMatch")
	case len(c.AppendMatch) > 0 && (c.PassthroughMode == PassthroughAll || c.PassthroughMode == PassthroughNone):
		v.fail(list, "has no effect with passthroughMode %s: use %s, or leave it out", c.PassthroughMode,
			PassthroughMatched)
	}
	if !v.few(len(c.AppendMatch), maxPassthroughMatches, list) {
		return
	}
	for i := range c.AppendMatch {
		v.passthroughMatch(&c.AppendMatch[i], list.item(i))
	}
}

func (v *validation) passthroughMatch(m *PassthroughMatch, at *fieldPath) {
	if m.Port != nil {
		v.port(*m.Port, at.field("port"))
	}
	if problem, field := m.Problem(); problem != "" {
		v.fail(at.field(field), "%s", problem)
	}
}

// Problem returns why a match matches nothing, and the field, or "" if it may match something.
func (m *PassthroughMatch) Problem() (text, field string) {
	if m.Protocol != "" && !slices.Contains(passthroughProtocols, m.Protocol) {
		return "want one of " + strings.Join(passthroughProtocols, ", ") + ", got " + strconv.Quote(shorten(m.Protocol)),
			"protocol"
	}
	switch m.Type {
	case PassthroughDomain:
		switch {
		case !isDomain(m.Value):
			return "want a host name such as example.com, or *.example.com for all names that end so", "value"
		case !m.ReadsTLS() && !m.ReadsHTTP():
			return "a domain shows in TLS and HTTP only: want tls, http, http2 or grpc, or a match by IP or CIDR", "protocol"
		}
		return "", ""
	case PassthroughIP, PassthroughCIDR:
	default:
		return "want Domain, IP or CIDR", "type"
	}
	prefix, err := m.Prefix()
	switch {
	case err != nil && m.Type == PassthroughIP:
		return "want an IP address", "value"
	case err != nil:
		return "want a range of addresses, such as 192.0.2.0/24", "value"
	}
	if why := reach.Within(prefix); why != "" {
		return why, "value"
	}
	return "", ""
}
