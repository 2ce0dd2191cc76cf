package discovery

import (
	"encoding/json"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
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
			was, err := json.Marshal(injected.XDSCA)
			must(t, err)
			is, err := json.Marshal(c.pod)
			must(t, err)
			text := strings.Replace(string(pod(t, "web-1", "10.0.0.1", true, more...).Raw), string(was), string(is), 1)
			one, err := apiserver.Parse([]byte(text))
			must(t, err)
			g.list(g.shop(one))
			g.settled()
			if got := slices.Contains(g.reasons[object{kind: "Pod", namespace: "shop", name: "web-1"}], ReasonOtherCA); got != c.told {
				t.Errorf("it is told: %v, want %v", got, c.told)
			}
			if !c.leaving {
				g.has("Dataplane default/shop/web-1", "MeshService default/shop/web")
			}
		})
	}
}
