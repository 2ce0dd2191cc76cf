package kds

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/api" //nolint:depguard // the same rules hold for what users write
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// ruleOfReach is a rule on whom the resources of zone-1 may speak for, with one that breaks it and a twin that does
// not.
type ruleOfReach struct {
	rule           string
	t              resources.Type
	namespace      string
	wrong, right   string
	rightNamespace string
	says           string
	// judgedByGlobal: another zone accepts it from the global, which knows more of the zone that wrote it.
	judgedByGlobal bool
}

// aTrust speaks for zone-1's own trust domain, with a harmless authority.
const aTrust = `{"trustDomain":"default.zone-1.mesh.local","caBundles":[{"type":"Pem","pem":{"value":"` +
	smallCA + `"}}]}`

const anEntry = `"default":{"idleTimeout":"1s"}`

var rulesOfReach = []ruleOfReach{
	{rule: "what lives with the system", t: resources.TypeMeshExternalService, namespace: "cats",
		wrong: `{"match":{"port":80}}`, right: `{"match":{"port":80}}`, rightNamespace: "kuma-system",
		says: "lives in the system namespace only"},
	{rule: "identities live with the system", t: resources.TypeMeshIdentity, namespace: "cats",
		wrong: `{"provider":{"type":"Bundled"}}`, right: `{"provider":{"type":"Bundled"}}`,
		rightNamespace: "kuma-system", says: "lives in the system namespace only"},
	{
		rule: "whom all believe is the system's to say", t: resources.TypeMeshTrust, namespace: "cats",
		says:  "lives in the system namespace only",
		wrong: aTrust, right: aTrust, rightNamespace: "kuma-system", judgedByGlobal: true,
	},
	{
		rule: "one role", t: resources.TypeMeshTimeout, namespace: "cats", says: "make two policies",
		wrong: `{"to":[{"targetRef":{"kind":"MeshService","name":"a"},` + anEntry +
			`},{"targetRef":{"kind":"MeshService","name":"b","namespace":"dogs"},` + anEntry + `}]}`,
		right: `{"to":[{"targetRef":{"kind":"MeshService","name":"a"},` + anEntry +
			`},{"targetRef":{"kind":"MeshService","name":"b","namespace":"cats"},` + anEntry + `}]}`,
	},
	{
		rule: "one side", t: resources.TypeMeshTimeout, namespace: "cats", says: "cannot be combined with to",
		wrong: `{"from":[{"targetRef":{"kind":"Mesh"},` + anEntry +
			`}],"to":[{"targetRef":{"kind":"MeshService","name":"a"},` + anEntry + `}]}`,
		right: `{"to":[{"targetRef":{"kind":"MeshService","name":"a"},` + anEntry + `}]}`,
	},
	{
		rule: "gateways are the operator's", t: resources.TypeMeshHTTPRoute, namespace: "cats",
		says:  "lives in the system namespace",
		wrong: `{"targetRef":{"kind":"MeshGateway","name":"g"},"to":[{"targetRef":{"kind":"MeshService","name":"a"},"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/"}}],"default":{}}]}]}`,
		right: `{"to":[{"targetRef":{"kind":"MeshService","name":"a"},"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/"}}],"default":{}}]}]}`,
	},
	{
		rule: "another mesh", t: resources.TypeMeshTimeout, namespace: "cats", says: "only reaches its own mesh",
		wrong: `{"to":[{"targetRef":{"kind":"MeshService","name":"a","mesh":"other"},` + anEntry + `}]}`,
		right: `{"to":[{"targetRef":{"kind":"MeshService","name":"a","mesh":"default"},` + anEntry + `}]}`,
	},
	{
		rule: "another zone's identity", t: resources.TypeMeshService, namespace: "cats", says: "workloads of its own zone",
		wrong: `{"ports":[{"port":80}],"identities":[{"type":"SpiffeID","value":"spiffe://default.zone-2.mesh.local/ns/cats/sa/cat"}]}`,
		right: `{"ports":[{"port":80}],"identities":[{"type":"SpiffeID","value":"spiffe://default.zone-1.mesh.local/ns/cats/sa/cat"}]}`,
	},
	{
		rule: "another namespace's identity", t: resources.TypeMeshService, namespace: "cats",
		says:  "workloads of its own namespace",
		wrong: `{"ports":[{"port":80}],"identities":[{"type":"SpiffeID","value":"spiffe://default.zone-1.mesh.local/ns/dogs/sa/dog"}]}`,
		right: `{"ports":[{"port":80}],"identities":[{"type":"SpiffeID","value":"spiffe://default.zone-1.mesh.local/ns/cats/sa/cat"}]}`,
	},
	{
		rule: "another zone's trust domain", t: resources.TypeMeshIdentity, namespace: "kuma-system",
		says:  "write it on the global",
		wrong: `{"spiffeID":{"trustDomain":"default.zone-2.mesh.local"},"provider":{"type":"Bundled"}}`,
		right: `{"spiffeID":{"trustDomain":"x.zone-1.mesh.local"},"provider":{"type":"Bundled"}}`,
	},
	{
		rule: "another namespace's service accounts", t: resources.TypeTrafficTarget, namespace: "cats",
		says:  "opens service accounts of that namespace only",
		wrong: `{"destination":{"kind":"ServiceAccount","name":"a","namespace":"dogs"},"sources":[{"kind":"ServiceAccount","name":"b","namespace":"b"}],"rules":[{"kind":"TCPRoute","name":"all"}]}`,
		right: `{"destination":{"kind":"ServiceAccount","name":"a","namespace":"cats"},"sources":[{"kind":"ServiceAccount","name":"b","namespace":"b"}],"rules":[{"kind":"TCPRoute","name":"all"}]}`,
	},
	{
		rule: "files on others' machines", t: resources.TypeMeshAccessLog, namespace: "cats",
		says:  "on the machines of the service's clients",
		wrong: `{"to":[{"targetRef":{"kind":"MeshService","name":"a"},"default":{"backends":[{"type":"File","file":{"path":"/etc/cron.d/x"}}]}}]}`,
		right: `{"to":[{"targetRef":{"kind":"MeshService","name":"a"},"default":{"backends":[{"type":"File","file":{"path":"/dev/stdout"}}]}}]}`,
	},
	{
		rule: "logs to others' machines", t: resources.TypeMeshAccessLog, namespace: "cats",
		says:  "which is loopback",
		wrong: `{"to":[{"targetRef":{"kind":"MeshService","name":"a"},"default":{"backends":[{"type":"OpenTelemetry","openTelemetry":{"endpoint":"127.0.0.1:4317"}}]}}]}`,
		right: `{"to":[{"targetRef":{"kind":"MeshService","name":"a"},"default":{"backends":[{"type":"OpenTelemetry","openTelemetry":{"endpoint":"192.0.2.1:4317"}}]}}]}`,
	},
	{
		rule: "a grant of another zone's services", t: resources.TypeMeshReferenceGrant, namespace: "cats",
		says:  "is not the grant's own zone",
		wrong: `{"from":[{"kind":"MeshHTTPRoute","namespace":"cats"}],"to":[{"kind":"MeshService","zone":"zone-2"}]}`,
		right: `{"from":[{"kind":"MeshHTTPRoute","namespace":"cats"}],"to":[{"kind":"MeshService","zone":"zone-1"}]}`,
	},
	{
		rule: "a namespace's grant of an operator's services", t: resources.TypeMeshReferenceGrant, namespace: "cats",
		says:  "belongs to the operator",
		wrong: `{"from":[{"kind":"MeshHTTPRoute","namespace":"cats"}],"to":[{"kind":"MeshExternalService"}]}`,
		right: `{"from":[{"kind":"MeshHTTPRoute","namespace":"cats"}],"to":[{"kind":"MeshService"}]}`,
	},
	{
		rule: "a grant of another namespace's services", t: resources.TypeMeshReferenceGrant, namespace: "cats",
		says:  "is not the grant's own namespace",
		wrong: `{"from":[{"kind":"MeshHTTPRoute","namespace":"cats"}],"to":[{"kind":"MeshService","namespace":"dogs"}]}`,
		right: `{"from":[{"kind":"MeshHTTPRoute","namespace":"cats"}],"to":[{"kind":"MeshService","namespace":"cats"}]}`,
	},
}

// TestRulesOfReachHoldEverywhere checks that each rule refuses, and accepts the twin, at each place that takes
// resources in: the HTTP API of the zone, the global that gets them from the zone, and another zone that gets them from
// the global.
func TestRulesOfReachHoldEverywhere(t *testing.T) {
	t.Parallel()
	for i := range rulesOfReach {
		row := &rulesOfReach[i]
		t.Run(strings.ReplaceAll(row.rule, " ", "-"), func(t *testing.T) {
			for place, try := range map[string]func(*testing.T, *resources.Resource) string{"API": byAPI,
				"global": byGlobal, "zone": byZone} {
				key := resources.Key{Type: row.t, Mesh: "default", Namespace: row.namespace, Name: "x"}
				if says := try(t, written(t, zoneHome("zone-1"), key, row.wrong)); !(row.judgedByGlobal &&
					place == "zone") && !strings.Contains(says, row.says) {
					t.Errorf("%s: %q does not say %q", place, says, row.says)
				}
				if row.rightNamespace != "" {
					key.Namespace = row.rightNamespace
				}
				if says := try(t, written(t, zoneHome("zone-1"), key, row.right)); says != "" {
					t.Errorf("%s: the twin: %s", place, says)
				}
			}
		})
	}
}

func byAPI(t *testing.T, r *resources.Resource) string {
	t.Helper()
	s := store.NewMemory()
	put(t, s, written(t, globalHome, resources.Key{Type: resources.TypeMesh, Name: "default"}, `{}`))
	server := httptest.NewServer(api.New(api.Config{Store: s, Home: zoneHome("zone-1")}))
	defer server.Close()
	client, err := api.NewClient(api.ClientConfig{Address: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	body := `{"type":"` + string(r.Type) + `","mesh":"default","namespace":"` + r.Namespace + `","name":"x","spec":` +
		string(r.Spec.JSON()) + `}`
	if err := client.JSON(t.Context(), api.Request{Method: http.MethodPut, Path: "/meshes/default/" +
		r.Descriptor().Path + "/x?namespace=" + r.Namespace, Body: []byte(body)}, nil); err != nil {
		return err.Error()
	}
	return ""
}

func byGlobal(t *testing.T, r *resources.Resource) string {
	return refusalOf(t, exchange.ZoneToGlobal, wireOf(t, "zone-1", r), r.Type)
}

// byZone sends r to a zone, as a compromised global could too.
func byZone(t *testing.T, r *resources.Resource) string {
	t.Helper()
	out, err := exchange.NewMapping().Outbound(r, &exchange.Audience{Direction: exchange.GlobalToZone, Zone: "zone-9",
		Features: exchange.OwnFeatures()})
	if err != nil {
		t.Fatal(err)
	}
	wire, err := Encode(out)
	if err != nil {
		t.Fatal(err)
	}
	return refusalOf(t, exchange.GlobalToZone, wire, r.Type)
}

func refusalOf(t *testing.T, direction exchange.Direction, wire *discovery.Resource, typ resources.Type) string {
	t.Helper()
	s := store.NewMemory()
	put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{}`))
	v := testReceiver(direction, s)
	v.arrival.SystemNamespace = resources.DefaultSystemNamespace
	if v.arrival.Zone = "zone-1"; direction == exchange.GlobalToZone {
		v.arrival.Zone = "zone-9"
	}
	answer, err := v.handle(t.Context(), &discovery.DeltaDiscoveryResponse{TypeUrl: string(typ), Nonce: "1",
		Resources: []*discovery.Resource{wire}})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetErrorDetail().GetMessage()
}

// TestNoRuleOfReachAsksWhoSent checks that these rules do not depend on whether a peer or a user sent the resource,
// except to find the owner.
func TestNoRuleOfReachAsksWhoSent(t *testing.T) {
	t.Parallel()
	asks := regexp.MustCompile(`v\.peer\b`)
	for file, want := range map[string]int{"validate_namespace.go": 1, "validate_grant.go": 0,
		"validate_services.go": 0, "validate_claims.go": 0} {
		raw, err := os.ReadFile("../resources/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(asks.FindAll(raw, -1)); got != want {
			t.Errorf("%s asks %d times, want %d: a rule on reach holds for all", file, got, want)
		}
	}
}

// TestSystemNamespaceOfAnotherName checks that what an operator writes into her zone's system namespace has the system
// role on the global, and that her MeshTrust reaches the other zones, whatever their system namespaces are called.
func TestSystemNamespaceOfAnotherName(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	g := startGlobal(t, s, func(c *GlobalConfig) { c.Validate = resources.ValidatePeer })
	put(t, s, written(t, globalHome, resources.Key{Type: resources.TypeMesh, Name: "default"}, `{}`))
	home := resources.Home{Zone: "zone-1", SystemNamespace: "mesh-one"}
	own, other := store.NewMemory(), store.NewMemory()
	for _, r := range []struct {
		t    resources.Type
		spec string
	}{{resources.TypeMeshTrust, aTrust}, {resources.TypeMeshIdentity, `{"provider":{"type":"Bundled"}}`}} {
		put(t, own, written(t, home, resources.Key{Type: r.t, Mesh: "default", Namespace: "mesh-one", Name: "x"}, r.spec))
	}
	startZone(t, "zone-1", g.address, own, func(c *ZoneConfig) { c.SystemNamespace, c.Validate = "mesh-one", resources.PeerValidation("mesh-one") })
	startZone(t, "zone-2", g.address, other, func(c *ZoneConfig) { c.Validate = resources.ValidateSpec })
	count := func(s store.Store, t resources.Type) (n int) {
		for range s.Snapshot().List(store.Query{Type: t, Labels: map[string]string{resources.LabelZone: "zone-1"}}) {
			n++
		}
		return n
	}
	eventually(t, "the identity on the global", func() bool { return count(s, resources.TypeMeshIdentity) == 1 })
	eventually(t, "the trust in the other zone", func() bool { return count(other, resources.TypeMeshTrust) == 1 })
}
