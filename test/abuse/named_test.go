package abuse

import (
	"context"
	"strings"
)

// curious are services of orders, and resources in payments that refer to them by labels alone.
const curious = `
{type: MeshService, mesh: default, namespace: orders, name: stock, spec: {selector: {dataplaneLabels: {matchLabels: {app: stock}}}, ports: [{port: 80}]}}
---
{type: MeshService, mesh: default, namespace: orders, name: vault, spec: {selector: {dataplaneLabels: {matchLabels: {app: vault}}}, ports: [{port: 80}]}}
---
{type: Dataplane, mesh: default, namespace: payments, name: curious, networking: {address: 127.0.0.1, inbound: [{name: http, port: 18096, servicePort: 18097, protocol: http}],
  outbound: [{address: 127.0.0.1, port: 18098, backendRef: {kind: MeshService, port: 80, labels: {k8s.kuma.io/namespace: orders}}}]}}
---
{type: MeshHTTPRoute, mesh: default, namespace: payments, name: curious, spec: {to: [{targetRef: {kind: Mesh}, rules: [
  {default: {backendRefs: [{kind: MeshService, labels: {k8s.kuma.io/namespace: orders}}]}}]}]}}
`

// makeCurious stores the resources for the rows about names.
func (w *world) makeCurious() {
	if _, err := w.zone.admin.ApplyDocuments(w.t.Context(), []byte(curious), "application/yaml"); err != nil {
		w.t.Fatal(err)
	}
}

// namedAttempt ends with "named" if a successful answer contains the name in `with`, and with "hidden" if not.
func namedAttempt(ctx context.Context, w *world, s *aServer, one side) (status, says string, err error) {
	if status, says, err = httpAttempt(ctx, w, s, one); err != nil || status != "200" {
		return status, says, err
	}
	if strings.Contains(says, one.With["name"]) {
		return "named", says, nil
	}
	return "hidden", says, nil
}
