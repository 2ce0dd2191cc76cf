package zone_test

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"testing"

	"github.com/causeway-mesh/causeway/zone"
)

// TestAuthoritiesThatEnvoyCannotRead: another zone publishes an authority that Go reads and Envoy does not. Proxies go
// on to believe all others, those that come afterwards too.
func TestAuthoritiesThatEnvoyCannotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	company := newTestCA(t)
	var parts []asn1.RawValue
	_, err := asn1.Unmarshal(company.cert.Raw, &parts)
	must(t, err)
	der, err := asn1.Marshal(append(parts, asn1.NullRawValue))
	must(t, err)
	if _, err := x509.ParseCertificate(der); err != nil {
		t.Fatalf("Go does not read it either, so that the row shows nothing: %v", err)
	}
	quoted, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	must(t, err)
	w.home.Zone = "zone-2"
	w.apply(fmt.Sprintf(`{type: MeshTrust, mesh: default, name: evil, spec: {trustDomain: default.zone-2.mesh.local, caBundles: [{type: Pem, pem: {value: %s}}]}}`, quoted))
	w.home.Zone = "zone-1"
	service, _ := application(t)
	port := freePort(t)
	w.httpDataplane("backend", port, service)
	w.allowAll()
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	good := w.client("caller")
	eventually(t, "a client of this zone to be allowed", func() bool { return status(good, port) == http.StatusOK })
	e.refusedNothing()
}
