package resources_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestListsThatProxiesPayFor checks the limits on lists whose items each become a listener or a cluster of a proxy,
// including the shared zone ingress: users and peers may send up to the limit, and no more.
func TestListsThatProxiesPayFor(t *testing.T) {
	t.Parallel()
	home := resources.Home{Zone: "zone-1"}
	for _, row := range []struct {
		typ        resources.Type
		field      string
		most       int
		spec, item string
	}{
		{resources.TypeDataplane, "networking.inbound", resources.MaxInbounds,
			`{"networking":{"address":"192.0.2.1","inbound":[%s]}}`, `{"port":%d}`},
		{resources.TypeDataplane, "networking.outbound", resources.MaxOutbounds,
			`{"networking":{"address":"192.0.2.1","inbound":[{"port":1}],"outbound":[%s]}}`,
			`{"port":%d,"backendRef":{"kind":"MeshService","name":"s","port":80}}`},
		{resources.TypeMeshService, "spec.ports", resources.MaxServicePorts, `{"ports":[%s]}`, `{"port":%d}`},
		{resources.TypeMeshService, "spec.identities", resources.MaxServiceIdentities, `{"ports":[{"port":80}],"identities":[%s]}`,
			`{"type":"SpiffeID","value":"spiffe://default.zone-1.mesh.local/ns/a/sa/%d"}`},
		{resources.TypeMeshMultiZoneService, "spec.ports", resources.MaxServicePorts,
			`{"selector":{"meshService":{"matchLabels":{"a":"b"}}},"ports":[%s]}`, `{"port":%d,"appProtocol":"http"}`},
	} {
		of := func(n int) *resources.Resource {
			var items []string
			for i := range n {
				items = append(items, fmt.Sprintf(row.item, 10_000+i))
			}
			spec, err := resources.NewSpec(row.typ, fmt.Appendf(nil, row.spec, strings.Join(items, ",")))
			if err != nil {
				t.Fatal(err)
			}
			from := home
			if row.typ == resources.TypeMeshMultiZoneService {
				from = resources.Home{} // the mesh operator's
			}
			return from.Labelled(&resources.Resource{Key: resources.Key{Type: row.typ, Mesh: "default", Name: "r"}, Spec: spec})
		}
		if err := resources.ValidatePeer(of(row.most), ""); err != nil {
			t.Errorf("%s of a %s, %d items: %v", row.field, row.typ, row.most, err)
		}
		err := resources.ValidatePeer(of(row.most+1), "")
		if want := fmt.Sprintf("%s: has %d items, want at most %d", row.field, row.most+1, row.most); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s of a %s, %d items: %v", row.field, row.typ, row.most+1, err)
		}
	}
}

// TestIdentitiesThatProxiesPayFor checks that neither users nor peers may give a service identities of which each client's proxy
// would have more than a MiB, since it has all of them for each port.
func TestIdentitiesThatProxiesPayFor(t *testing.T) {
	t.Parallel()
	home := resources.Home{Zone: "zone-1"}
	service := func(ports, identities int) *resources.Resource {
		var s resources.MeshService
		for i := range ports {
			s.Ports = append(s.Ports, resources.MeshServicePort{Port: uint32(1 + i)})
		}
		id := "spiffe://default.zone-1.mesh.local/ns/payments/sa/"
		id += strings.Repeat("a", 1024-len(id))
		for range identities {
			s.Identities = append(s.Identities, resources.ServiceIdentity{Type: "SpiffeID", Value: id})
		}
		spec, err := resources.NewSpecOf(resources.TypeMeshService, &s)
		if err != nil {
			t.Fatal(err)
		}
		return home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "payments",
			Name: "r"}, Spec: spec})
	}
	for _, row := range []struct {
		ports, identities int
		refused           bool
	}{{0, 1000, false}, {1, 1000, false}, {2, 512, false}, {2, 513, true}, {256, 4, false}, {256, 5, true}} {
		r := service(row.ports, row.identities)
		for who, err := range map[string]error{"users": resources.Validate(r, home), "peers": resources.ValidatePeer(r, "")} {
			if (err != nil) != row.refused || err != nil && !strings.Contains(err.Error(), "spec.identities: have ") {
				t.Errorf("%d identities for %d ports of %s: %v", row.identities, row.ports, who, err)
			}
		}
	}
}

// TestTextsThatProxiesPayFor checks the limits on texts of which a proxy has a copy for each outbound that a policy is
// for.
func TestTextsThatProxiesPayFor(t *testing.T) {
	t.Parallel()
	receive := fmt.Sprintf("%q", base64.StdEncoding.EncodeToString(make([]byte, 60<<10)))
	plain := fmt.Sprintf("%q", strings.Repeat("a", 4000))
	for name, row := range map[string]struct {
		typ        resources.Type
		spec, item string
		most       int
		says       string
		peers      bool
	}{
		"answers of health checks": {resources.TypeMeshHealthCheck, `{"tcp":{"receive":[%s]}}`, receive, 2,
			"tcp.receive: want at most 131072 bytes in all", true},
		"headers of retries": {resources.TypeMeshRetry, `{"http":{"retriableRequestHeaders":[%s]}}`,
			`{"name":"` + strings.Repeat("a", 100) + `","type":"Present"}`, 253, "spec.to[0].default: has ", true},
		"failover of balancing": {resources.TypeMeshLoadBalancingStrategy,
			`{"localityAwareness":{"crossZone":{"failover":[{"to":{"type":"Only","zones":[%s]}}]}}}`,
			`"` + strings.Repeat("a", 60) + `"`, 518, "spec.to[0].default: has ", true},
		"bodies of logs": {resources.TypeMeshAccessLog,
			`{"backends":[{"type":"OpenTelemetry","openTelemetry":{"endpoint":"a.example:4317","body":{"arrayValue":{"values":[%s]}}}}]}`,
			`{"stringValue":` + plain + `}`, 16, "want at most 65536 bytes, got", false},
		"attributes of logs": {resources.TypeMeshAccessLog,
			`{"backends":[{"type":"OpenTelemetry","openTelemetry":{"endpoint":"a.example:4317","attributes":[%s]}}]}`,
			`{"key":"%d","value":` + plain + `}`, 16, "want at most 65536 bytes, got", false},
	} {
		for n, says := range map[int]string{row.most: "", row.most + 1: row.says, 2 * row.most: row.says} {
			var items []string
			for i := range n {
				items = append(items, strings.ReplaceAll(row.item, "%d", fmt.Sprint(i)))
			}
			spec, err := resources.NewSpec(row.typ, fmt.Appendf(nil, `{"to":[{"targetRef":{"kind":"Mesh"},"default":`+row.spec+`}]}`, strings.Join(items, ",")))
			if err != nil {
				t.Fatal(err)
			}
			home := resources.Home{Zone: "zone-1"}
			r := home.Labelled(&resources.Resource{Key: resources.Key{Type: row.typ, Mesh: "default", Name: "r"}, Spec: spec})
			for who, err := range map[string]error{"users": resources.Validate(r, home), "peers": resources.ValidatePeer(r, "")} {
				want := says
				if who == "peers" && !row.peers {
					want = ""
				}
				if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s of %s, %d: %v", name, who, n, err)
				}
			}
		}
	}
}
