package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/kubernetes/discovery"
	sidecar "github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	zoneserver "github.com/causeway-mesh/causeway/zone"
)

// shop is a namespace that asks for proxies, with a Service, and where its pods are.
const shop = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {kuma.io/sidecar-injection: enabled}}
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {topology.kubernetes.io/zone: a}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: web, appProtocol: http}]}
`

// pods writes pods as a controller and a kubelet do.
type pods struct {
	w      *world
	client *apiserver.Client
	kind   apiserver.Kind
	spec   json.RawMessage
}

func (w *world) pods() *pods {
	w.t.Helper()
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: w.kubeconfig(admin), RequestsPerSecond: 2000})
	must(w.t, err)
	raw := []byte(`{"spec": {"nodeName": "node-1", "serviceAccountName": "web", "containers": [{"name": "app", "image": "app", "ports": [{"name": "web", "containerPort": 8080}]}]}}`)
	result, err := sidecar.Inject(raw, sidecar.Namespace{Name: "shop", Labels: map[string]string{"kuma.io/sidecar-injection": "enabled"}},
		&sidecar.Settings{Image: "zone", Envoy: "envoy", XDSAddress: "zone:5678", Audience: "proxy", SystemNamespace: systemName,
			XDSCA: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", Bootstrap: zoneserver.PodBootstrap})
	must(w.t, err)
	var document struct{ Spec map[string]json.RawMessage }
	must(w.t, json.Unmarshal(raw, &document))
	for _, op := range result.Patch {
		if name, ok := strings.CutPrefix(op.Path, "/spec/"); ok {
			document.Spec[name] = op.Value
		}
	}
	spec, err := json.Marshal(document.Spec)
	must(w.t, err)
	return &pods{w: w, client: client, spec: spec, kind: apiserver.Kind{Version: "v1", Plural: "pods", Name: "Pod", Namespaced: true}}
}

// each does something with each of count pods, a few at a time.
func (p *pods) each(prefix string, count int, do func(ctx context.Context, name string, i int) error) {
	p.w.t.Helper()
	group, ctx := errgroup.WithContext(p.w.t.Context())
	group.SetLimit(16)
	for i := range count {
		group.Go(func() error { return do(ctx, fmt.Sprintf("%s-%d", prefix, i), i) })
	}
	must(p.w.t, group.Wait())
}

func (p *pods) create(ctx context.Context, name string, _ int) error {
	generation, _, _ := strings.Cut(name, "-")
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": p.spec,
		"metadata": map[string]any{"name": name, "namespace": "shop", "labels": map[string]string{"app": "web", "generation": generation}}})
	if err == nil {
		_, err = p.client.Create(ctx, p.kind, "shop", raw)
	}
	return err
}

// runs gives a pod an address of a network, and says that it is ready.
func (p *pods) runs(network int) func(context.Context, string, int) error {
	return func(ctx context.Context, name string, i int) error {
		ip := fmt.Sprintf("10.%d.%d.%d", network, i/250, 1+i%250)
		_, err := p.client.Patch(ctx, p.kind, apiserver.Name{Namespace: "shop", Name: name}, "status", fmt.Appendf(nil,
			`{"status": {"phase": "Running", "podIP": %q, "podIPs": [{"ip": %[1]q}], "conditions": [{"type": "Ready", "status": "True"}]}}`, ip))
		return err
	}
}

func (p *pods) remove(ctx context.Context, name string, _ int) error {
	o, err := p.client.Get(ctx, p.kind, apiserver.Name{Namespace: "shop", Name: name})
	if err == nil {
		err = p.client.Delete(ctx, p.kind, o.ID(), o.Meta.UID)
	}
	return err
}

// gone removes the pods of a generation at once, as a kubelet does once they have ended.
func (p *pods) gone(generation string) {
	p.w.t.Helper()
	p.w.kubectl("delete", "--raw", "/api/v1/namespaces/shop/pods?gracePeriodSeconds=0&labelSelector=generation%3D"+generation)
}

// counted is discovery with a store that counts.
type counted struct {
	w     *world
	store *store.Memory
	since uint64
}

func (w *world) counted(home resources.Home) *counted {
	w.t.Helper()
	c := &counted{w: w, store: store.NewMemory()}
	spec, err := resources.NewSpec(resources.TypeMesh, []byte("{}"))
	must(w.t, err)
	mesh := home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMesh, Name: "default"}, Spec: spec})
	commit, err := c.store.Apply(w.t.Context(), store.Batch{Ops: []store.Op{{Put: mesh}}})
	must(w.t, err)
	c.since = commit.Revision
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: w.kubeconfig(zoneUser)})
	must(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- discovery.New(discovery.Config{Client: client, Store: c.store, Home: home, Log: slog.New(slog.DiscardHandler)}).Run(ctx)
	}()
	w.t.Cleanup(func() { cancel(); must(w.t, <-done) })
	return c
}

// has waits until there are so many Dataplanes, so many of them ready, and checks how many changes that took.
func (c *counted) has(what string, total, ready, changes int) {
	c.w.t.Helper()
	c.w.eventually(what, func(context.Context) error {
		all, good := 0, 0
		for r := range c.store.Snapshot().List(store.Query{Type: resources.TypeDataplane}) {
			if all++; !strings.Contains(string(r.Spec.JSON()), "NotReady") {
				good++
			}
		}
		if all != total || good != ready {
			return fmt.Errorf("%d Dataplanes, %d of them ready", all, good)
		}
		return nil
	})
	revision := c.store.Snapshot().Revision()
	commits, ok := c.store.Changes(c.since)
	c.since = revision
	got := 0
	for _, commit := range commits {
		got += len(commit.Changes)
	}
	if !ok || got != changes {
		c.w.t.Errorf("%s: %d changes, want %d", what, got, changes)
	}
	c.w.t.Logf("%s: %d changes in %d batches", what, got, len(commits))
}

// dataplanes waits until a zone has so many.
func (z *zone) dataplanes(total int) {
	z.w.t.Helper()
	z.w.eventually(fmt.Sprintf("%s to have %d Dataplanes", z.Name(), total), func(ctx context.Context) error {
		_, text, err := z.call(ctx, http.MethodGet, "/meshes/default/dataplanes?size=1", "")
		if err == nil && !strings.Contains(text, fmt.Sprintf(`"total": %d,`, total)) {
			err = fmt.Errorf("it says %.200s", text)
		}
		return err
	})
}

// TestKubernetesDiscovery makes 500 pods, as a controller and a kubelet would, and replaces them: the store is given what
// changed and nothing else. A zone that is killed notices what went meanwhile. What it made users cannot change, and what
// users made it leaves alone.
func TestKubernetesDiscovery(t *testing.T) {
	const count = 500
	w := newWorld(t)
	z := w.zone()
	z.webhooks("Fail")
	c := w.counted(resources.Home{Zone: "zone-1"})
	w.apply(shop)
	p := w.pods()
	p.each("old", count, p.create)
	p.each("old", count, p.runs(1))
	c.has("pods that run", count, count, count+1) // the Service, too
	z.dataplanes(count)

	p.each("new", count, p.create)
	p.each("new", count, p.runs(2))
	c.has("pods that take over", 2*count, 2*count, count)
	p.each("old", count, p.remove)
	c.has("pods that leave", 2*count, count, count)
	p.gone("old")
	c.has("pods that are gone", count, count, count)
	z.dataplanes(count)

	if out := w.refused(usersDataplane("new-0")); !strings.Contains(out, "the zone makes the Dataplane shop/new-0 of the Pod of its name") {
		t.Errorf("kubectl says %s", out)
	}
	w.apply(usersDataplane("mine"))
	w.condition("dataplane", "shop", "mine", "Accepted", "True")
	must(t, p.create(t.Context(), "mine", 0))
	must(t, p.runs(3)(t.Context(), "mine", 0))
	w.eventually("an Event", func(ctx context.Context) error {
		out, err := w.tryKubectl(ctx, admin, "get", "events", "-n", "shop", "--field-selector", "involvedObject.name=mine")
		if err == nil && !strings.Contains(out, "NameTaken") {
			err = fmt.Errorf("there is none in %s", out)
		}
		return err
	})

	z.Kill()
	p.gone("new")
	z.start()
	z.dataplanes(1)
	if _, text, err := z.call(t.Context(), http.MethodGet, "/meshes/default/dataplanes/mine?namespace=shop", ""); err != nil ||
		!strings.Contains(text, "192.0.2.1") {
		t.Errorf("the user's Dataplane is %s %v", text, err)
	}
}

// usersDataplane is one that a user writes.
func usersDataplane(name string) string {
	return fmt.Sprintf(`{"apiVersion": "kuma.io/v1alpha1", "kind": "Dataplane", "metadata": {"name": %q, "namespace": "shop",
 "labels": {"k8s.kuma.io/service-account": "web"}}, "spec": {"networking": {"address": "192.0.2.1", "inbound": [{"port": 80}]}}}
`, name)
}
