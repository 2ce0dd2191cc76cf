package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/deploy"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// injection are the flags of a zone that gives pods their proxies.
var injection = []string{"--injection-image", "causeway-zone:dev", "--injection-envoy-image", "envoy:dev",
	"--injection-xds-address", "causeway-zone.kuma-system.svc:5678", "--xds-require-credentials"}

// injectionWebhooks tells the API server of the zone's webhook for pods, with the selectors of the chart.
func (z *zone) injectionWebhooks() {
	z.w.t.Helper()
	values, err := deploy.Values("causeway-zone")
	must(z.w.t, err)
	for _, set := range []string{"zone=zone-1", "kubernetes.enabled=true", "injection.enabled=true"} {
		must(z.w.t, deploy.Set(values, set))
	}
	text, err := deploy.Render(&deploy.Release{Chart: "causeway-zone", Name: "z", Namespace: systemName, Values: values})
	must(z.w.t, err)
	for _, document := range strings.Split(string(text), "\n---\n") {
		var object struct {
			Kind     string           `json:"kind"`
			Webhooks []map[string]any `json:"webhooks"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil || object.Kind != "MutatingWebhookConfiguration" {
			continue
		}
		var ours []map[string]any
		for _, hook := range object.Webhooks {
			if name := fmt.Sprint(hook["name"]); strings.HasSuffix(name, ".injection.causeway.io") {
				hook["clientConfig"] = map[string]string{"url": fmt.Sprintf("https://127.0.0.1:%d/inject", z.w.hookPort)}
				ours = append(ours, hook)
			}
		}
		raw, err := json.Marshal(map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": object.Kind,
			"metadata": map[string]string{"name": "causeway-zone"}, "webhooks": ours})
		must(z.w.t, err)
		if len(ours) != 2 {
			z.w.t.Fatalf("the chart has other webhooks: %s", document)
		}
		z.w.apply(string(raw))
	}
}

// pod is a pod of a service account, with labels.
func pod(namespace, name, account, labels string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": %q, "name": %q, "labels": {%s}},
 "spec": {"serviceAccountName": %q, "containers": [{"name": "app", "image": "app:1", "ports": [{"containerPort": 8080}]}]}}`, namespace, name, labels, account)
}

// proxied reports whether a pod has its proxy.
func (w *world) proxied(namespace, name string) bool {
	w.t.Helper()
	return strings.Contains(w.kubectl("get", "pod", "-n", namespace, name, "-o", "jsonpath={.spec.initContainers[*].name}"),
		"causeway-capture causeway-proxy")
}

// tokenOfPod is a token that the API server makes for a pod.
func (w *world) tokenOfPod(name, account, audience string, more ...string) string {
	w.t.Helper()
	return strings.TrimSpace(w.kubectl(append([]string{"create", "token", account, "-n", "shop", "--audience", audience,
		"--bound-object-kind", "Pod", "--bound-object-name", name}, more...)...))
}

// opens opens a proxy's stream with a token, for a Dataplane of namespace shop, and returns how that goes.
func (z *zone) opens(ctx context.Context, token, dataplane string) error {
	raw, err := os.ReadFile(z.ready)
	var addresses struct{ XDS string }
	if err == nil {
		err = json.Unmarshal(raw, &addresses)
	}
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(addresses.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), patience)
	defer cancel()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	where, err := structpb.NewStruct(map[string]any{xds.NamespaceKey: "shop"})
	if err != nil {
		return err
	}
	_ = stream.Send(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: xds.NodeID("default", dataplane), Metadata: where},
		TypeUrl:                "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
		ResourceNamesSubscribe: []string{"identity_cert:default/shop/" + dataplane}}) // Recv tells why it fails
	answer, err := stream.Recv()
	if err == nil && len(answer.GetResources()) != 1 {
		err = fmt.Errorf("it has no identity: %v", answer)
	}
	return err
}

// TestKubernetesPods creates pods in a real API server, by the selectors of the chart: a pod that asks gets a proxy or does not
// start. Then it opens the streams of their proxies with tokens that the API server makes for them.
func TestKubernetesPods(t *testing.T) {
	w := newWorld(t)
	z := w.zone(append(injection, "--diagnostics-address", "0.0.0.0:0")...) // a port off loopback, so that it has a certificate for pods
	w.kubectl("create", "namespace", "shop")
	w.kubectl("label", "namespace", "shop", "kuma.io/sidecar-injection=enabled")
	w.kubectl("create", "namespace", "plain")
	w.kubectl("create", "serviceaccount", "-n", "shop", "web")
	z.injectionWebhooks()
	w.eventually("a pod to get its proxy", func(ctx context.Context) error {
		out, err := w.feedKubectl(ctx, admin, pod("shop", "typo", "web", `"kuma.io/sidecar-injection": "enable"`), "apply", "-f", "-")
		if err == nil || !strings.Contains(out, "want enabled or disabled") {
			return fmt.Errorf("a typo is not refused: %s", out)
		}
		return nil
	})
	for _, c := range []struct {
		namespace, name, labels string
		want                    bool
	}{
		{"shop", "web-1", "", true}, {"shop", "web-2", "", true}, {"shop", "declines", `"kuma.io/sidecar-injection": "disabled"`, false},
		{"plain", "asks", `"kuma.io/sidecar-injection": "enabled"`, true}, {"plain", "does-not", "", false},
		{systemName, "server", `"kuma.io/sidecar-injection": "enabled"`, false},
		{"kube-system", "dns", `"kuma.io/sidecar-injection": "enabled"`, false},
	} {
		w.apply(pod(c.namespace, c.name, map[bool]string{true: "web", false: "default"}[c.namespace == "shop"], c.labels))
		if got := w.proxied(c.namespace, c.name); got != c.want {
			t.Errorf("%s/%s has a proxy: %v, want %v", c.namespace, c.name, got, c.want)
		}
	}

	for _, name := range []string{"web-1", "web-2"} {
		w.apply(strings.Replace(dataplane(name, 8080, map[string]string{account: "web"}), "backend-ns", "shop", 1))
	}
	own := w.tokenOfPod("web-1", "web", "causeway-proxy")
	w.eventually("web-1 to get its identity", func(ctx context.Context) error { return z.opens(ctx, own, "web-1") })
	unbound := strings.TrimSpace(w.kubectl("create", "token", "web", "-n", "shop", "--audience", "causeway-proxy"))
	for name, c := range map[string]struct {
		token, dataplane string
		want             codes.Code
	}{
		"another pod's Dataplane": {own, "web-2", codes.PermissionDenied},
		"another audience":        {w.tokenOfPod("web-1", "web", "https://127.0.0.1"), "web-1", codes.Unauthenticated},
		"no pod":                  {unbound, "web-1", codes.Unauthenticated},
		"altered":                 {own[:len(own)-8] + "AAAAAAAA", "web-1", codes.Unauthenticated},
	} {
		if err := z.opens(t.Context(), c.token, c.dataplane); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	w.kubectl("delete", "pod", "-n", "shop", "web-1", "--force", "--grace-period=0")
	w.eventually("the token of the deleted pod to be refused", func(ctx context.Context) error {
		if err := z.opens(ctx, own, "web-1"); status.Code(err) != codes.Unauthenticated {
			return fmt.Errorf("it gives %w", err)
		}
		return nil
	})

	other := w.tokenOfPod("web-2", "web", "causeway-proxy")
	must(t, z.Stop(t.Context()))
	out, err := w.feedKubectl(t.Context(), admin, pod("shop", "late", "web", ""), "apply", "-f", "-")
	if err == nil || !strings.Contains(out, "namespaces.injection.causeway.io") {
		t.Errorf("a pod starts without a proxy while the zone is down: %v %s", err, out)
	}
	w.apply(pod("kube-system", "late", "default", ""))
	w.apply(pod(systemName, "late", "default", ""))
	z.start()
	w.api.Kill()
	if err := z.opens(t.Context(), other, "web-2"); status.Code(err) != codes.Unavailable {
		t.Errorf("without the API server: %v, want Unavailable", err)
	}
}
