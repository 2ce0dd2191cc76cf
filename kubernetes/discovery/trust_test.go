package discovery

import (
	"encoding/json"
	"encoding/pem"
	"slices"
	"testing"
)

// certificate is PEM text; what is in it does not matter here.
func certificate(of string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(of)}))
}

// TestPodsOfAnotherAuthority: a pod whose proxy trusts none of the zone's certificates is told of it, for its proxy cannot
// connect. A zone that has more than one, or another text of the same, is trusted.
func TestPodsOfAnotherAuthority(t *testing.T) {
	t.Parallel()
	a, b := certificate("a"), certificate("b")
	for name, c := range map[string]struct {
		pod, zone string
		leaving   bool
		told      bool
	}{
		"the same":                  {pod: a, zone: a},
		"one of two":                {pod: a, zone: b + a},
		"the zone's, and an older":  {pod: b + a, zone: a},
		"with words around it":      {pod: "# ours\n" + a, zone: a},
		"another":                   {pod: a, zone: b, told: true},
		"another, of a leaving pod": {pod: a, zone: b, leaving: true},
		"a file":                    {pod: "/etc/ca.crt", zone: b},
		"a zone without one":        {pod: a},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			g.Authority = func() []byte { return []byte(c.zone) }
			var more []func(metadata m)
			if c.leaving {
				more = append(more, leaving)
			}
			settings := injected
			settings.XDSCA = c.pod
			for form, spec := range map[string]json.RawMessage{"now": injectedSpec(&settings), "of an earlier version": earlierSpec(t, c.pod)} {
				with := func(metadata m) { metadata["spec"] = spec }
				g.list(g.shop(pod(t, "web-1", "10.0.0.1", true, append(more, with)...)))
				g.settled()
				if got := slices.Contains(g.reasons[object{kind: "Pod", namespace: "shop", name: "web-1"}], ReasonOtherCA); got != c.told {
					t.Errorf("%s: it is told: %v, want %v", form, got, c.told)
				}
				if !c.leaving {
					g.has("Dataplane default/shop/web-1", "MeshService default/shop/web")
				}
			}
		})
	}
}

// earlierSpec is the spec of a pod that an earlier version injected, whose proxy trusts a CA.
func earlierSpec(t testing.TB, ca string) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(m{"nodeName": "node-1", "containers": []any{m{"name": "app", "ports": []any{m{"containerPort": 80}}}},
		"initContainers": []any{m{"name": "causeway-bootstrap", "args": []any{"bootstrap", "--mesh", "default", "--xds-ca", ca}},
			m{"name": "causeway-capture", "args": []any{"capture", "install", "--inbound-port", "15006", "--outbound-port", "15001",
				"--exclude-inbound-ports", "15021"}}, m{"name": "causeway-proxy", "restartPolicy": "Always"}}})
	must(t, err)
	return raw
}
