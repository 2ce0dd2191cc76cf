package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestPodTooBig: a pod whose Dataplane no store can hold costs itself only, and its author is told.
func TestPodTooBig(t *testing.T) {
	g := newRig(t)
	g.list(g.shop(pod(t, "a", "10.1.0.1", true), bigPod(t, "b", "10.1.0.2"), pod(t, "c", "10.1.0.3", true)))
	g.wrote("beside a pod that is too big", 1, 3)
	g.has("Dataplane default/shop/a", "Dataplane default/shop/c", "MeshService default/shop/web")
	g.told("Pod shop/b TooBig")
}

// TestPodThatClaimsMuch: nobody waits for a pod whose author wrote as much into it as the API server takes, and it takes no
// more memory than it has text.
func TestPodThatClaimsMuch(t *testing.T) { // it measures, so it runs alone
	forged := func(record m, labels m, ports int) *Pod {
		raw, err := json.Marshal(record)
		must(t, err)
		list := []m{}
		for i := range ports {
			list = append(list, m{"containerPort": 1 + i%65535, "name": fmt.Sprint("p", i)})
		}
		read, err := readPod(parsed(t, m{"metadata": m{"name": "a", "namespace": "shop", "labels": labels}, "spec": m{
			"initContainers": []m{{"name": injection.ProxyName, "restartPolicy": "Always", "env": []m{{"name": "CAUSEWAY_INJECTED",
				"value": string(raw)}}}}, "containers": []m{{"name": "x", "ports": list[:ports/2]}, {"name": "y", "ports": list[ports/2:]}}},
			"status": m{"podIP": "10.1.0.1"}}))
		must(t, err)
		return read
	}
	past := slices.Repeat([]string{"1"}, injection.MaxPast+1)
	if p := forged(m{"mesh": "default", "pastInbound": past}, nil, 1); p.proxy() != nil {
		t.Errorf("a record with %d ranges of ports is taken: each is compared with each port", len(past))
	}
	p := forged(m{"mesh": "default", "pastInbound": past[1:]}, nil, 3*maxPorts)
	if n := len(p.Spec.Containers[0].Ports) + len(p.Spec.Containers[1].Ports); n != maxPorts {
		t.Errorf("of %d ports, %d are kept, want %d", 3*maxPorts, n, maxPorts)
	}
	dp, problems, err := DataplaneOf(p, nil, nil)
	if err != nil || dp == nil || len(problems) != 1 || problems[0].Reason != ReasonTooMany {
		t.Errorf("many ports are %v, %v, %v", dp, problems, err)
	}
	labels := m{}
	for i := range 1000 {
		labels[fmt.Sprintf("%s%d.example.org/x", strings.Repeat("a.", 100), i)] = "y"
	}
	p = forged(m{"mesh": "default"}, labels, resources.MaxInbounds)
	if dp, _, err := DataplaneOf(p, nil, nil); !errors.Is(err, errTooBig) {
		t.Errorf("a Dataplane with too many labels is %v, %v", dp, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, _ = DataplaneOf(p, nil, nil)
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 4<<20 {
		t.Errorf("the labels of a pod took %d MiB, want less than 4", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}

// TestPodOfManyOtherPorts: ports of another protocol do not count, which a proxy does not serve.
func TestPodOfManyOtherPorts(t *testing.T) {
	t.Parallel()
	list := []m{}
	for i := range maxPorts {
		list = append(list, m{"containerPort": 20000 + i, "protocol": "UDP"})
	}
	spec := m{"initContainers": []m{{"name": injection.ProxyName, "restartPolicy": "Always", "env": []m{{"name": "CAUSEWAY_INJECTED",
		"value": `{"mesh": "default"}`}}}}, "containers": []m{{"name": "media", "ports": list},
		{"name": "app", "ports": []m{{"containerPort": 8080, "name": "web"}}}}}
	p, err := readPod(pod(t, "a", "10.1.0.1", true, func(metadata m) { metadata["spec"] = spec }))
	must(t, err)
	dp, problems, err := DataplaneOf(p, nil, nil)
	if err != nil || len(problems) > 0 || !strings.Contains(string(dp.Spec.JSON()), "8080") || p.named()["web"] != 8080 {
		t.Errorf("the pod is %s, %v, %v", dp.Spec.JSON(), problems, err)
	}
}

// TestPodThatGrowsTooBig: the version that is stored stays, as the pod still runs.
func TestPodThatGrowsTooBig(t *testing.T) {
	g := newRig(t)
	g.list(g.shop(pod(t, "b", "10.1.0.2", true)))
	g.settled()
	g.of("pods").Changed(bigPod(t, "b", "10.1.0.2"))
	g.wrote("too big", 1, 0)
	g.has("Dataplane default/shop/b", "MeshService default/shop/web")
	g.told("Pod shop/b TooBig")
}

// TestServiceWiderThanAMeshService: a Service that cannot be a MeshService is none for each pod behind it either, and gives no pod
// inbounds.
func TestServiceWiderThanAMeshService(t *testing.T) {
	g := newRig(t)
	shop := g.shop(pod(t, "a", "10.1.0.1", true))
	ports := []any{m{"port": 2000, "protocol": "UDP"}}
	for i := range resources.MaxServicePorts + 1 {
		ports = append(ports, m{"name": fmt.Sprint("p", i), "port": 1000 + i, "targetPort": 2000 + i})
	}
	shop["services"] = append(shop["services"], service(t, "wide", m{"clusterIP": "None", "ports": ports}))
	g.list(shop)
	g.settled()
	g.has("Dataplane default/shop/a", "MeshService default/shop/web")
	g.told("Service shop/wide NotInMesh")
	r := g.store.Snapshot().Get(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Namespace: "shop", Name: "a"})
	if strings.Contains(string(r.Spec.JSON()), "2001") {
		t.Errorf("the pod has an inbound for it: %s", r.Spec.JSON())
	}
}

// bigPod has so many labels and ports that they are too much for one resource, since each inbound has all labels.
func bigPod(t *testing.T, name, ip string) *apiserver.Object {
	t.Helper()
	o := pod(t, name, ip, true, func(metadata m) {
		labels := m{"app": "web"}
		for i := range 100 {
			labels[fmt.Sprintf("example.org/%050d", i)] = strings.Repeat("x", 60)
		}
		metadata["labels"] = labels
	})
	const one = `{"containerPort":80}`
	more := one
	for i := range 200 {
		more += fmt.Sprintf(`,{"containerPort":%d}`, 1000+i)
	}
	raw := strings.Replace(string(o.Raw), one, more, 1)
	if raw == string(o.Raw) {
		t.Fatal("the pod has no port")
	}
	o, err := apiserver.Parse([]byte(raw))
	must(t, err)
	return o
}

// strict is a store that can hold less than others: it refuses one name.
type strict struct {
	store.Store
	refuses string
}

func (s *strict) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	for _, op := range b.Ops {
		if op.Put != nil && op.Put.Name == s.refuses {
			return nil, &store.TooLargeError{Key: op.Put.Key, Bytes: 1}
		}
	}
	return s.Store.Apply(ctx, b)
}

// TestStoreThatHoldsLess: what a store refuses for its size holds up nothing else, and is not tried again and again.
func TestStoreThatHoldsLess(t *testing.T) {
	g := newRig(t)
	g.Controller.Store = &strict{g.store, "b"}
	g.list(g.shop(pod(t, "a", "10.1.0.1", true), pod(t, "b", "10.1.0.2", true)))
	g.wrote("beside what the store refuses", 1, 2)
	g.has("Dataplane default/shop/a", "MeshService default/shop/web")
	g.wrote("again", 0, 0)
}

// TestNamespaceIsFull: a namespace gets no more by its pods and Services than its users may write into it. What is there
// stays, and what waits comes once there is room. Services come before the pods behind headless ones.
func TestNamespaceIsFull(t *testing.T) {
	g := newRig(t)
	g.Limits = api.NamespaceLimits{Dataplanes: 2, ServicePorts: 3}
	shop := g.shop(pod(t, "a", "10.1.0.1", true), pod(t, "b", "10.1.0.2", true), pod(t, "c", "10.1.0.3", true))
	shop["services"] = append(shop["services"], service(t, "headless", m{"clusterIP": "None"}))
	g.list(shop)
	g.settled()
	ofA := "MeshService default/shop/" + podServiceName(&Service{Metadata: serviceMetadata{Metadata: Metadata{Name: "headless"}}},
		&Pod{Metadata: Metadata{Name: "a"}})
	g.has("Dataplane default/shop/a", "Dataplane default/shop/b", ofA, "MeshService default/shop/headless", "MeshService default/shop/web")
	g.told("Service shop/headless NamespaceFull", "Service shop/headless NamespaceFull", "Pod shop/c NamespaceFull")
	g.restart()
	g.Limits = api.NamespaceLimits{Dataplanes: 1, ServicePorts: 1}
	g.list(shop)
	g.wrote("a lower limit", 0, 0)
	g.Limits = api.NamespaceLimits{Dataplanes: 2, ServicePorts: 2}
	g.of("pods").Deleted(pod(t, "a", "10.1.0.1", true))
	<-g.work
	g.settled()
	select {
	case <-g.work:
	default:
		t.Error("nothing wakes the controller for the pod that waits")
	}
	g.settled()
	g.has("Dataplane default/shop/b", "Dataplane default/shop/c", "MeshService default/shop/headless", "MeshService default/shop/web")
	if n := len(g.spaces["shop"].crowded); n > 0 {
		t.Errorf("%d pods still wait", n)
	}
}

// TestNameOfAnotherService: a Service whose name the MeshService of a pod behind another Service has, says so.
func TestNameOfAnotherService(t *testing.T) {
	g := newRig(t)
	shop := g.shop(pod(t, "a", "10.1.0.1", true))
	headless := &Service{Metadata: serviceMetadata{Metadata: Metadata{Name: "0"}}}
	taken := podServiceName(headless, &Pod{Metadata: Metadata{Name: "a"}})
	shop["services"] = []*apiserver.Object{service(t, "0", m{"clusterIP": "None"}), service(t, taken, m{"clusterIP": "10.2.0.1"})}
	g.list(shop)
	g.wrote("two of one name", 1, 3)
	g.told("Service shop/" + taken + " NameTaken")
}

// TestPodNameOfItsOwn: a pod is known to other zones by its name only if that is its name.
func TestPodNameOfItsOwn(t *testing.T) {
	g := newRig(t)
	named := func(name string) func(m) {
		return func(metadata m) { metadata["labels"] = m{"app": "web", labelPodName: name} }
	}
	shop := g.shop(pod(t, "web-0", "10.1.0.1", true, named("web-0")), pod(t, "web-1", "10.1.0.2", true, named("web-0")))
	shop["services"] = []*apiserver.Object{service(t, "web", m{"clusterIP": "None"})}
	g.list(shop)
	g.settled()
	for r := range g.store.Snapshot().List(store.Query{Type: resources.TypeMeshService}) {
		if r.Name == "web" {
			continue
		}
		stays, first := r.Labels[resources.LabelSync] == resources.SyncDisabled, strings.HasPrefix(r.Name, "web-0-")
		if stays == first || (r.Labels[labelPodName] == "web-0") != first {
			t.Errorf("%s has %v", r.Name, r.Labels)
		}
	}
}

// TestServiceOfManyPorts: a Service with more ports than a MeshService takes is refused, and its author is told.
func TestServiceOfManyPorts(t *testing.T) {
	g := newRig(t)
	shop := g.shop()
	ports := []any{}
	for i := range resources.MaxServicePorts + 1 {
		ports = append(ports, m{"port": 1000 + i, "name": fmt.Sprintf("p%d", i)})
	}
	shop["services"] = append(shop["services"], parsed(t, m{"kind": "Service", "metadata": m{"name": "wide", "namespace": "shop"},
		"spec": m{"clusterIP": "10.2.0.2", "selector": m{"app": "web"}, "ports": ports}}))
	g.list(shop)
	g.settled()
	g.has("MeshService default/shop/web")
	g.told("Service shop/wide NotInMesh")
}
