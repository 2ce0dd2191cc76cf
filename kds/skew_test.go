package kds

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestZonesWithoutAFeature: a zone that lacks one optional feature, and one that lacks all, gets and gives all that the
// feature is not about, in each of its sessions. A global that lacks all is in TestZoneWithAPlainGlobal.
func TestZonesWithoutAFeature(t *testing.T) {
	lacking := map[string]Features{"ours": plainFeatures, "any": 0}
	for _, f := range featureNames {
		lacking[f.name] = OwnFeatures() &^ f.feature
	}
	timeout := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "of-global"}
	const spec = `{"targetRef":{"kind":"Mesh"},"to":[{"targetRef":{"kind":"Mesh"},"default":{"idleTimeout":"1s"}}]}`
	for name, features := range lacking {
		t.Run("without "+name, func(t *testing.T) {
			g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Validate = resources.ValidateSpec })
			put(t, g.store, written(t, globalHome, timeout, spec))
			for _, session := range []string{"first", "second"} {
				p := dialPeer(t, "zone-1", g.address, features)
				p.openDown(timeout.Type)
				m := p.receive()
				if len(m.GetResources()) != 1 || !strings.HasPrefix(m.GetResources()[0].GetName(), "of-global") {
					t.Errorf("%s session: got %v", session, m.GetResources())
				}
				p.ack(m)
				p.openUp()
				service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: session}
				item := wireOf(t, "zone-1", written(t, zoneHome("zone-1"), service, `{"selector":{"dataplaneLabels":{"matchLabels":{"app":"a"}}},"ports":[{"port":80}]}`))
				answer := p.send(service.Type, session, nil, item)
				if text := answer.GetErrorDetail().GetMessage(); text != "" || find(g.store, service.Type, session) == nil {
					t.Errorf("%s session: the global refused the service: %s", session, text)
				}
				_ = p.conn.Close()
			}
		})
	}
}
