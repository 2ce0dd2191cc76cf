package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// The zone of TestKubernetesIngress, and the Deployment and Service of its ingress.
const (
	edgeNamespace = "edge-system"
	edgeSet       = "edge-causeway-zone"
	edgeIngress   = edgeSet + "-ingress"
)

// edge is a zone in a cluster, with an ingress, and beside it on this machine a global and another zone with two clients.
type edge struct {
	*kube

	beside           *cluster.Cluster
	global, other    *cluster.Server
	client, stranger *cluster.Workload
}

// TestKubernetesIngress: a client of a zone on this machine calls a service of pods by the zone ingress of their cluster,
// whose address comes from its Service, and the permission decides by the client's own identity.
func TestKubernetesIngress(t *testing.T) {
	k := newKube(t)
	k.loadServers()
	k.defineTypes()
	_, _ = k.tryHelm("uninstall", "z", "--namespace", "mesh-system") // an object has one server
	e := &edge{kube: k}
	e.startBeside()
	e.install()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if t.Failed() {
			e.tell(ctx)
		}
		if out, err := runHelm(ctx, k.Kubeconfig(), "uninstall", "edge", "--namespace", edgeNamespace, "--wait"); err != nil {
			t.Error(out)
		}
		for _, namespace := range []string{edgeNamespace, "edge-shop"} {
			_, _ = k.Kubectl(ctx, "delete", "namespace", namespace, "--wait=false")
		}
	})
	t.Run("without an address", func(t *testing.T) { e.as(t).checkPending() })
	e.backend()
	e.calls(e.client, "200")
	e.calls(e.stranger, "403")
	t.Run("replaced under requests", func(t *testing.T) { e.as(t).checkReplaced() })
	t.Run("by a port of the node", func(t *testing.T) { e.as(t).checkNodePort() })
	t.Run("the permission removed", func(t *testing.T) { e.as(t).checkDenied() })
	t.Run("without pods", func(t *testing.T) { e.as(t).checkOff() })
	if logs := k.kubectl("-n", edgeNamespace, "logs", edgeSet+"-0"); strings.Contains(logs, "forbidden") {
		t.Errorf("the server wants rights that the chart does not give:\n%s", logs)
	}
}

func (e *edge) as(t *testing.T) *edge {
	other := *e
	other.kube = e.kube.as(t)
	return &other
}

// startBeside starts the global, at an address that pods reach, and zone-2.
func (e *edge) startBeside() {
	e.t.Helper()
	envoy, err := cluster.FindEnvoy("")
	must(e.t, err)
	e.beside, err = cluster.New(cluster.Config{Bin: servers.bin, Envoy: envoy, Dir: e.t.TempDir()})
	must(e.t, err)
	e.t.Cleanup(func() { must(e.t, e.beside.Close()) })
	e.global, err = e.beside.StartGlobal(e.t.Context(), cluster.GlobalConfig{Hosts: map[string]string{"kds": e.Machine}})
	must(e.t, err)
	e.other, err = e.beside.StartZone(e.t.Context(), cluster.ZoneConfig{Name: "zone-2", Global: e.global})
	must(e.t, err)
	for name, into := range map[string]**cluster.Workload{"client": &e.client, "stranger": &e.stranger} {
		*into, err = e.beside.StartWorkload(e.t.Context(), cluster.WorkloadConfig{
			Zone: e.other, Mesh: "default", Namespace: "clients", Name: name, ServiceAccount: name,
			Inbounds: []cluster.InboundConfig{{Name: "http", Protocol: cluster.ProtocolHTTP}},
			Outbounds: []cluster.OutboundConfig{{Name: "backend", BackendRef: map[string]any{"kind": "MeshService", "port": 80,
				"labels": map[string]any{"kuma.io/display-name": "backend", "kuma.io/zone": "zone-1"}}}},
		})
		must(e.t, err)
		e.t.Cleanup((*into).Close)
	}
}

// install installs zone-1, in a namespace whose pods must be restricted.
func (e *edge) install() {
	e.t.Helper()
	join, err := e.beside.JoinString(e.t.Context(), e.global, "zone-1")
	must(e.t, err)
	e.apply(fmt.Sprintf(`{"apiVersion": "v1", "kind": "List", "items": [
 {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %[1]q, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
 {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "join", "namespace": %[1]q}, "stringData": {"join": %[2]q}}]}`, edgeNamespace, join))
	e.upgrade("ingress.enabled=true")
	e.ready(edgeNamespace, edgeSet)
}

// upgrade installs the chart, or other values.
func (e *edge) upgrade(set string) {
	e.t.Helper()
	e.helm("upgrade", "--install", "edge", filepath.Join("deploy", "charts", "causeway-zone"), "--namespace", edgeNamespace, "--reuse-values", "--set",
		"join.secretName=join,kubernetes.enabled=true,injection.enabled=true,injection.envoyImage=localhost/envoy:dev,persistence.enabled=false,"+
			"ingress.drainSeconds=5,resources.requests.cpu=10m,ingress.resources.requests.cpu=10m,"+set)
}

// checkPending: before the load balancer has an address, no pod is ready, and each says why. With one, they are.
func (e *edge) checkPending() {
	e.eventually("the pods of the ingress to say why", func(ctx context.Context) error {
		out, err := e.Kubectl(ctx, "-n", edgeNamespace, "get", "events", "--field-selector", "reason=NoAddress", "-o", "jsonpath={.items[*].message}")
		if err == nil && strings.Count(out, "Service "+edgeIngress+" has no address of a load balancer yet") < 2 {
			err = fmt.Errorf("they say %q", out)
		}
		return err
	})
	if got := e.kubectl("-n", edgeNamespace, "get", "deployment", edgeIngress, "-o", "jsonpath={.status.readyReplicas}"); got != "" {
		e.t.Errorf("%s are ready", got)
	}
	if got := e.advertised(e.t.Context()); got != "" {
		e.t.Errorf("without an address, zone-2 has %s", got)
	}
	e.kubectl("-n", edgeNamespace, "patch", "service", edgeIngress, "--subresource=status", "--type=merge", "-p",
		fmt.Sprintf(`{"status": {"loadBalancer": {"ingress": [{"ip": %q}]}}}`, e.Address()))
	e.kubectl("-n", edgeNamespace, "rollout", "status", "deployment/"+edgeIngress, "--timeout=120s")
	e.advertises(e.Address()+":10001", 2)
}

// advertised returns where zone-2 reaches each ingress of zone-1.
func (e *edge) advertised(ctx context.Context) string {
	all, err := e.other.API.List(ctx, "/zoneingresses")
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, one := range all {
		var it struct {
			Networking struct {
				AdvertisedAddress string
				AdvertisedPort    int
			}
		}
		if err := e.other.API.Get(ctx, "/zoneingresses/"+one.Name, &it); err != nil {
			return err.Error()
		}
		out = append(out, fmt.Sprintf("%s:%d", it.Networking.AdvertisedAddress, it.Networking.AdvertisedPort))
	}
	return strings.Join(out, " ")
}

// advertises waits until zone-2 has as many ingresses of zone-1, all at one address.
func (e *edge) advertises(address string, count int) {
	e.t.Helper()
	want := strings.TrimSpace(strings.Repeat(address+" ", count))
	e.eventually("zone-2 to know the address", func(ctx context.Context) error {
		if got := e.advertised(ctx); got != want {
			return fmt.Errorf("it has %q, want %q", got, want)
		}
		return nil
	})
}

// backend starts a service of pods, and permits the client of zone-2.
func (e *edge) backend() {
	e.t.Helper()
	manifest := strings.NewReplacer("default.zone-1.mesh.local/ns/stalls/sa/client",
		"default.zone-2.mesh.local/ns/clients/sa/client", "stalls", "edge-shop").Replace(stalls)
	e.eventually("the backend to be taken", func(ctx context.Context) error {
		out, err := e.Apply(ctx, manifest)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	e.kubectl("-n", "edge-shop", "rollout", "status", "deployment/backend", "--timeout=120s")
}

// calls waits until a call of the backend is answered with a status.
func (e *edge) calls(w *cluster.Workload, want string) {
	e.t.Helper()
	e.eventually(fmt.Sprintf("%s to get %s", w.Name, want), func(ctx context.Context) error {
		status, body, err := w.Call(ctx, "backend", "/")
		if err == nil && fmt.Sprint(status) != want {
			err = fmt.Errorf("it gets %d %s", status, body)
		}
		return err
	})
}

// checkReplaced replaces all pods of the ingress while the client calls: an ingress that leaves serves on until nobody
// comes by it.
func (e *edge) checkReplaced() {
	stop := e.requests(50)
	e.kubectl("-n", edgeNamespace, "rollout", "restart", "deployment/"+edgeIngress)
	e.kubectl("-n", edgeNamespace, "rollout", "status", "deployment/"+edgeIngress, "--timeout=180s")
	e.eventually("the old pods to be gone", func(ctx context.Context) error {
		out, err := e.Kubectl(ctx, "-n", edgeNamespace, "get", "pods", "-l", "app.kubernetes.io/name=causeway-zone-ingress", "-o", "name")
		if err == nil && strings.Count(out, "pod/") != 2 {
			err = errors.New(out)
		}
		return err
	})
	sent, failed := stop()
	e.t.Logf("%d requests, %d failed: %v", sent, len(failed), failed)
	if len(failed) > 0 {
		e.t.Errorf("%d of %d requests failed", len(failed), sent)
	}
	e.advertises(e.Address()+":10001", 2)
}

// requests has the client call the backend so often a second, until stop tells what came of it.
func (e *edge) requests(perSecond int) (stop func() (sent int, failed []string)) {
	ctx, cancel := context.WithCancel(e.t.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	sent, failed := 0, []string{}
	one := func() {
		status, body, err := e.client.Call(context.WithoutCancel(ctx), "backend", "/")
		mu.Lock()
		defer mu.Unlock()
		if sent++; err != nil || status != http.StatusOK {
			failed = append(failed, fmt.Sprintf("%s: %d %s %v", time.Now().Format(time.TimeOnly), status, body, err))
		}
	}
	all.Go(func() {
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				all.Go(one)
			}
		}
	})
	return func() (int, []string) { cancel(); all.Wait(); return sent, failed }
}

// checkNodePort: the Service gets another type, and other zones the port of the pods' node.
func (e *edge) checkNodePort() {
	e.upgrade("ingress.enabled=true,ingress.service.type=NodePort,ingress.service.nodePort=30101")
	e.advertises(e.Address()+":30101", 2)
	e.calls(e.client, "200")
	e.calls(e.stranger, "403")
}

// checkDenied: the ingress leads to the service, and not past its permission.
func (e *edge) checkDenied() {
	e.kubectl("-n", "edge-shop", "delete", "meshtrafficpermission", "backend")
	e.calls(e.client, "403")
}

// checkOff: without pods, other zones do not try.
func (e *edge) checkOff() {
	e.upgrade("ingress.enabled=true,ingress.replicas=0")
	e.eventually("zone-2 to know no ingress", func(ctx context.Context) error {
		if got := e.advertised(ctx); got != "" {
			return errors.New(got)
		}
		return nil
	})
	e.calls(e.client, "503")
}

// tell logs what happened.
func (e *edge) tell(ctx context.Context) {
	for _, args := range [][]string{{"get", "pods,services,zoneingresses,events"}, {"logs", edgeSet + "-0", "--tail=30"},
		{"logs", "-l", "app.kubernetes.io/name=causeway-zone-ingress", "--all-containers", "--tail=20"}} {
		out, _ := e.Kubectl(ctx, append([]string{"-n", edgeNamespace}, args...)...)
		e.t.Log(out)
	}
	var b strings.Builder
	e.beside.Tails(&b, 10)
	e.t.Log(b.String())
}
