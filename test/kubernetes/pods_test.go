package kubernetes

import (
	"context"
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/test/kubernetes/images"
)

// stalls are a backend, which is an Envoy that answers, and callers: with the proxy and permission, with the proxy alone,
// and without a proxy.
const stalls = `
apiVersion: v1
kind: Namespace
metadata: {name: stalls, labels: {kuma.io/sidecar-injection: enabled}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: client, namespace: stalls}
---
apiVersion: kuma.io/v1alpha1
kind: MeshTrafficPermission
metadata: {name: backend, namespace: stalls, labels: {kuma.io/mesh: default}}
spec:
  targetRef: {kind: Dataplane, labels: {app: backend}}
  default:
    allow:
    - {spiffeId: {type: Exact, value: "spiffe://default.zone-1.mesh.local/ns/stalls/sa/client"}}
---
apiVersion: v1
kind: Service
metadata: {name: backend, namespace: stalls}
spec: {selector: {app: backend}, ports: [{name: http, port: 80, targetPort: 8080, appProtocol: http}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: backend, namespace: stalls}
spec:
  selector: {matchLabels: {app: backend}}
  template:
    metadata: {labels: {app: backend}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: localhost/envoy:dev
        imagePullPolicy: Never
        ports: [{containerPort: 8080}]
        args:
        - --disable-hot-restart
        - --concurrency
        - "1"
        - --config-yaml
        - |
          static_resources:
            listeners:
            - address: {socket_address: {address: 0.0.0.0, port_value: 8080}}
              filter_chains:
              - filters:
                - name: envoy.filters.network.http_connection_manager
                  typed_config:
                    "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                    stat_prefix: app
                    http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
                    route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: hello}}}]}]}
`

// caller is a pod that waits, from which curl is run.
func caller(namespace, name, account string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": %q},
 "spec": {"serviceAccountName": %q, "terminationGracePeriodSeconds": 1, "containers": [{"name": "curl", "image": "localhost/curl:dev", "imagePullPolicy": "Never", "args": ["1000000"]}]}}`,
		name, namespace, account)
}

// checkPods has the zone give pods their proxies, and calls between them: who may is what the permission says, and nobody
// comes past the proxy.
func (k *kube) checkPods() {
	image, err := images.Linked(k.t.Context(), "localhost/curl:dev", "curl", "sleep")
	must(k.t, err)
	must(k.t, k.Load(k.t.Context(), image))
	k.eventually("the pods to be taken", func(ctx context.Context) error {
		out, err := k.Apply(ctx, stalls)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	k.namespace("plain")
	for _, pod := range []string{caller("stalls", "client", "client"), caller("stalls", "stranger", "default"), caller("plain", "client", "default")} {
		k.eventually("a caller to be taken", func(ctx context.Context) error {
			out, err := k.Apply(ctx, pod)
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	defer func() {
		if k.t.Failed() {
			what, _ := k.Kubectl(context.WithoutCancel(k.t.Context()), "describe", "pods", "-n", "stalls")
			logs, _ := k.Kubectl(context.WithoutCancel(k.t.Context()), "logs", "-n", "stalls", "-l", "app=backend", "--all-containers", "--tail=20")
			k.t.Log(what, logs)
		}
	}()
	k.kubectl("rollout", "status", "-n", "stalls", "deployment/backend", "--timeout=90s")
	k.kubectl("wait", "-n", "stalls", "--for=condition=Ready", "pod/client", "pod/stranger", "--timeout=90s")
	k.kubectl("wait", "-n", "plain", "--for=condition=Ready", "pod/client", "--timeout=90s")
	address := k.kubectl("get", "pod", "-n", "stalls", "-l", "app=backend", "-o", "jsonpath={.items[0].status.podIP}")
	service := k.kubectl("get", "service", "-n", "stalls", "backend", "-o", "jsonpath={.spec.clusterIP}")
	for _, c := range []struct{ namespace, pod, url, want string }{
		{"stalls", "client", service, "200"},
		{"stalls", "stranger", service, "403"},
		{"plain", "client", service, "000"},
		{"plain", "client", address + ":8080", "000"},
		{"plain", "client", address + ":9901/ready", "000"},
		{"plain", "client", address + ":15021/ready", "200"},
	} {
		k.eventually(fmt.Sprint(c), func(ctx context.Context) error {
			out, _ := k.Kubectl(ctx, "exec", "-n", c.namespace, c.pod, "-c", "curl", "--", "/usr/bin/curl", "-s", "-m", "5", "-o", "/dev/null",
				"-w", "%{http_code}", "http://"+c.url)
			if !strings.HasPrefix(out, c.want) {
				return fmt.Errorf("it answers %s", out)
			}
			return nil
		})
	}
}
