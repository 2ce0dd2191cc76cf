package kds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// smallCA is an unused self-signed certificate, as it stands in JSON.
const smallCA = `-----BEGIN CERTIFICATE-----\nMIIBdDCCARugAwIBAgIUfQiki0UOOok4zFAXfpmhotfIG0swCgYIKoZIzj0EAwIw\nDzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjEwMzMzMzdaGA8yMTI2MTAyODAzMzMz\nN1owDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABEJT\nWA73sP1KwArdNUW5mRZqSwO5AEbLx1/EQZ6C3XaUAruC2oQDkYqRw8f5j22mNI3M\nFhkx1j7aZ2um2a/VRzWjUzBRMB0GA1UdDgQWBBTLZscneS+8/6oETukMUEsCtJ64\n+TAfBgNVHSMEGDAWgBTLZscneS+8/6oETukMUEsCtJ64+TAPBgNVHRMBAf8EBTAD\nAQH/MAoGCCqGSM49BAMCA0cAMEQCID0DeFDpOP8Wcm5AEQzewDUUcUsMZbWmwW2c\nfdZDZKtjAiANmDkGm03UhYugobN73SgzTHL7jsranxU0P1hpvf8BjQ==\n-----END CERTIFICATE-----\n`

// smallSpec returns a valid spec of a type.
func smallSpec(d *resources.Descriptor) string {
	switch {
	case d.Type == resources.TypeDataplane:
		return `{"networking":{"address":"1.2.3.4","inbound":[{"port":80,"tags":{"kuma.io/service":"a"}}]}}`
	case d.Type == resources.TypeZoneIngress:
		return `{"networking":{"address":"1.2.3.4","port":10001}}`
	case d.Type == resources.TypeMeshService:
		return `{"selector":{"dataplaneLabels":{"matchLabels":{"app":"a"}}},"ports":[{"port":80}]}`
	case d.Type == resources.TypeMeshTrust:
		return `{"trustDomain":"default.zone-1.mesh.local","caBundles":[{"type":"Pem","pem":{"value":"` + smallCA + `"}}]}`
	case d.Type == resources.TypeMeshIdentity:
		return `{"selector":{"dataplane":{}},"provider":{"type":"Bundled"}}`
	case d.Type == resources.TypeMeshExternalService:
		return `{"match":{"port":443,"protocol":"tcp"},"endpoints":[{"address":"example.org","port":443}]}`
	case d.Type == resources.TypeMeshMultiZoneService:
		return `{"selector":{"meshService":{"matchLabels":{"app":"a"}}},"ports":[{"port":80,"appProtocol":"http"}]}`
	case d.Type == resources.TypeMeshReferenceGrant:
		return `{"from":[{"kind":"MeshHTTPRoute","zone":"zone-2","namespace":"cats"}],"to":[{"kind":"MeshService"}]}`
	case d.Type == resources.TypeMeshTrafficPermission:
		return `{"targetRef":{"kind":"Mesh"},"rules":[{"default":{"allow":[{"spiffeID":{"type":"Exact","value":"spiffe://a/b"}}]}}]}`
	case d.Type == resources.TypeTrafficTarget:
		return `{"destination":{"kind":"ServiceAccount","name":"a","namespace":"a"},"sources":[{"kind":"ServiceAccount","name":"b","namespace":"b"}],"rules":[{"kind":"TCPRoute","name":"all"}]}`
	case d.Type == resources.TypeHTTPRouteGroup:
		return `{"matches":[{"name":"all","pathRegex":".*","methods":["*"]}]}`
	case d.Policy != nil && d.Policy.Single:
		return `{"targetRef":{"kind":"Mesh"},"default":{}}`
	case d.Policy != nil:
		return `{"targetRef":{"kind":"Mesh"}}`
	}
	return `{}`
}

// poisonedItems returns three items of a type as a peer sends them: the good one between two that cannot be decoded.
func poisonedItems(t *testing.T, good *discovery.Resource) []*discovery.Resource {
	t.Helper()
	noEnvelope := proto.Clone(good).(*discovery.Resource)
	noEnvelope.Name = "aaa." + good.GetName()
	noEnvelope.Resource.Value = []byte("\xff\xff\xff")
	e := envelope(t, good)
	e.Spec = &anypb.Any{TypeUrl: e.GetSpec().GetTypeUrl(), Value: []byte("{{{")}
	e.Meta.Name = "poison-" + e.GetMeta().GetName()
	raw, err := proto.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	noSpec := proto.Clone(good).(*discovery.Resource)
	noSpec.Name = "poison-" + good.GetName()
	noSpec.Resource.Value = raw
	return []*discovery.Resource{noEnvelope, good, noSpec}
}

func refusesOnlyPoison(t *testing.T, text string, items []*discovery.Resource) {
	t.Helper()
	for i, item := range items {
		if refused := strings.Contains("\n"+text, "\n"+item.GetName()+": "); refused != (i != 1) {
			t.Errorf("%s: refused is %t in %q", item.GetName(), refused, text)
		}
	}
}

// TestPoisonFromAZone checks, for each type from zone to global, that what the global cannot decode is refused by name,
// and the rest is stored, also in later sessions, which bring the poison again.
func TestPoisonFromAZone(t *testing.T) {
	t.Parallel()
	for _, d := range resources.Descriptors() {
		if !exchange.ZoneToGlobal.Carries(d) || d.Type == resources.TypeDataplaneInsight {
			continue
		}
		t.Run(string(d.Type), func(t *testing.T) {
			g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Validate = resources.ValidatePeer })
			for session := range 2 {
				p := dialPeer(t, "zone-1", g.address, plainFeatures)
				p.openUp()
				key := resources.Key{Type: d.Type, Mesh: "default", Name: fmt.Sprintf("good-%d", session)}
				if d.Scope == resources.ScopeGlobal {
					key.Mesh = ""
				}
				items := poisonedItems(t, wireOf(t, "zone-1", written(t, zoneHome("zone-1"), key, smallSpec(d))))
				for again := range 2 { // the first response of a session is the whole list, the second a change
					answer := p.send(d.Type, fmt.Sprint(again+1), nil, items...)
					refusesOnlyPoison(t, answer.GetErrorDetail().GetMessage(), items)
				}
				if find(g.store, d.Type, key.Name) == nil || count(g.store, d.Type) != 1 {
					t.Errorf("session %d: %d resources, and not only %s", session, count(g.store, d.Type), key.Name)
				}
				if n := len(g.Refusals("zone-1")); n < 2 {
					t.Errorf("session %d: %d refusals are kept", session, n)
				}
				_ = p.conn.Close()
			}
		})
	}
}

// TestPoisonFromTheGlobal is TestPoisonFromAZone in the other direction.
func TestPoisonFromTheGlobal(t *testing.T) {
	t.Parallel()
	for _, d := range resources.Descriptors() {
		if !d.GlobalToZone {
			continue
		}
		t.Run(string(d.Type), func(t *testing.T) {
			g, s := startPlainGlobal(t), store.NewMemory()
			for session := range 2 {
				z := startZone(t, "zone-1", g.address, s, func(c *ZoneConfig) { c.Validate = resources.ValidateSpec })
				key := resources.Key{Type: d.Type, Mesh: "default", Name: fmt.Sprintf("good-%d", session)}
				if d.Scope == resources.ScopeGlobal {
					key.Mesh = ""
				}
				items := poisonedItems(t, plainItem(t, written(t, globalHome, key, smallSpec(d))))
				for again := range 2 {
					answer := g.list(t, d.Type, fmt.Sprintf("%d-%d", session, again), nil, items...)
					refusesOnlyPoison(t, answer.GetErrorDetail().GetMessage(), items)
				}
				if find(s, d.Type, key.Name) == nil || count(s, d.Type) != 1 {
					t.Errorf("session %d: %d resources, and not only %s", session, count(s, d.Type), key.Name)
				}
				z.stop()
				g.ended()
			}
		})
	}
}
