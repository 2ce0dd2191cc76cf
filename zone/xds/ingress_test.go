package xds

import (
	"os"
	"path/filepath"
	"testing"
)

// TestServerNamesThatAreSpelledAlike: a service of no namespace, whose name begins as that of a namespace does, does not get what
// other zones send to the namespace's own service; what is spelled in one way only is served.
func TestServerNamesThatAreSpelledAlike(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "store.yaml")
	if err := os.WriteFile(file, []byte(`type: MeshService
mesh: default
name: payments.vault
spec: {selector: {dataplaneLabels: {matchLabels: {app: bait}}}, ports: [{port: 80}, {port: 81}]}
---
type: MeshService
mesh: default
name: vault
labels: {k8s.kuma.io/namespace: payments}
spec: {selector: {dataplaneLabels: {matchLabels: {app: vault}}}, ports: [{port: 80}]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	x := testProxies(storeOf(t, file))
	got := map[string]string{}
	for _, b := range x.network.exported() {
		if other, twice := got[b.sni()]; twice {
			t.Errorf("%s leads to %s and to %s", b.sni(), other, b.name)
		}
		got[b.sni()] = b.name
	}
	for sni, want := range map[string]string{
		"sni.msvc.default.zone-1.payments.vault.80": "kri_msvc_default_zone-1_payments_vault_80",
		"sni.msvc.default.zone-1.payments.vault.81": "kri_msvc_default_zone-1__payments.vault_81",
	} {
		if got[sni] != want {
			t.Errorf("%s leads to %q, want %q", sni, got[sni], want)
		}
	}
}
