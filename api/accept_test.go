package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestProblemsOfAllDocuments checks that one response names the problems of all documents of a batch, whichever check
// finds them: a type of another server, the hash of a secret that is not here, and a value of the wrong form.
func TestProblemsOfAllDocuments(t *testing.T) {
	t.Parallel()
	_, err := global(t).call(t, "POST", "/_batch", `type: Dataplane
mesh: default
name: elsewhere
networking: {address: 10.0.0.1, inbound: [{port: 80}]}
---
type: MeshExternalService
mesh: default
name: hashed
spec:
  match: {type: HostnameGenerator, port: 443, protocol: tls}
  endpoints: [{address: bank.example.com, port: 443}]
  tls:
    enabled: true
    verification: {clientCert: {inlineString: x}, clientKey: {inlineString: "sha256:`+strings.Repeat("0", 64)+`"}}
---
type: MeshTimeout
mesh: default
name: Malformed
spec: {to: [{targetRef: {kind: Mesh}, default: {idleTimeout: 1h}}]}
`)
	if err == nil {
		t.Fatal("stored")
	}
	said := fmt.Sprint(err.InvalidParameters)
	for _, want := range []string{"belongs to a zone", "is the hash of a secret that this resource does not have here", `"Malformed" is not a name`} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q: %s", want, said)
		}
	}
}
