package zone_test

import (
	"fmt"
	"testing"
)

// TestRoutesThatEnvoyDoesNotTake: what one rule of a route says never keeps a client's proxy from the next rule, nor
// from anything else. Whoever owns a service writes such rules for the proxies of all its clients, and a peer's are not
// checked where they are written.
func TestRoutesThatEnvoyDoesNotTake(t *testing.T) {
	t.Parallel()
	w := newTraced(t)
	const all = `{"path":{"type":"PathPrefix","value":"/"}}`
	modify := func(how string) string {
		return `{"filters":[{"type":"RequestHeaderModifier","requestHeaderModifier":` + how + `}]}`
	}
	for i, row := range []struct{ match, conf string }{
		{`{"path":{"type":"PathPrefix","value":"/a/?x"}}`, `{}`},
		{`{"headers":[{"name":"","value":"x"}]}`, `{}`},
		{`{"headers":[{"name":"a b\n","value":"x"}]}`, `{}`},
		{`{"queryParams":[{"name":"","value":"x"}]}`, `{}`},
		{all, modify(`{"set":[{"name":"","value":"x"}]}`)},
		{all, modify(`{"set":[{"name":"x","value":"a\nb"}]}`)},
		{all, modify(`{"set":[{"name":":path","value":"x"}]}`)},
		{all, modify(`{"add":[{"name":"Host","value":"x"}]}`)},
		{all, modify(`{"remove":["host",":authority",""]}`)},
		{all, `{"filters":[{"type":"ResponseHeaderModifier","responseHeaderModifier":{"add":[{"name":":status","value":"200"}]}}]}`},
		{all, `{"filters":[{"type":"ResponseHeaderModifier","responseHeaderModifier":{"remove":[":status"]}}]}`},
		{all, `{"filters":[{"type":"RequestRedirect","requestRedirect":{"hostname":"a\nb"}}]}`},
		{all, `{"filters":[{"type":"RequestRedirect","requestRedirect":{"path":{"type":"ReplaceFullPath","replaceFullPath":"\n"}}}]}`},
		{all, `{"filters":[{"type":"URLRewrite","urlRewrite":{"hostname":"\n"}}]}`},
		{all, `{"filters":[{"type":"URLRewrite","urlRewrite":{"path":{"type":"ReplacePrefixMatch","replacePrefixMatch":"\n%x"}}}]}`},
		{all, `{"backendRefs":[{"kind":"MeshService","name":"backend","port":80,"weight":4294967295},{"kind":"MeshService","name":"backend","port":80,"weight":4294967295}]}`},
	} {
		mark := fmt.Sprintf("mark-%d-", i)
		w.apply(`{"type":"MeshHTTPRoute","mesh":"default","name":"r","spec":{"to":[{"targetRef":{"kind":"MeshService","name":"backend"},"rules":[
  {"matches":[` + row.match + `],"default":` + row.conf + `},
  {"matches":[{"path":{"type":"Exact","value":"/next"}}],"default":` + modify(`{"set":[{"name":"x-mark","value":"`+mark+`"}]}`) + `}]}]}}`)
		eventually(t, "the rule beside "+row.match+" "+row.conf, func() bool { return w.routes(mark) })
	}
	w.caller.refusedNothing()
}
