package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// ingressPod is a pod as the chart makes it, in the operator's namespace.
func ingressPod(t testing.TB, name, ip string, more ...func(metadata m)) *apiserver.Object {
	t.Helper()
	metadata := m{"name": name, "namespace": resources.DefaultSystemNamespace, "uid": "uid-" + name, "labels": m{"app": "ingress"}}
	for _, change := range more {
		change(metadata)
	}
	return parsed(t, m{"kind": "Pod", "metadata": metadata, "status": m{"phase": "Running", "podIP": ip},
		"spec": m{"nodeName": "node-1", "initContainers": []any{m{"name": "causeway-bootstrap", "args": []any{"bootstrap", "--zone-ingress", "$(POD_NAME)"}}},
			"containers": []any{m{"name": "envoy", "ports": []any{m{"name": "ingress", "containerPort": 10001}}}}}})
}

// ingressService is the Service in front of them; the rest is JSON.
func ingressService(t testing.TB, spec, status, annotations string) *apiserver.Object {
	t.Helper()
	document := fmt.Sprintf(`{"kind": "Service", "metadata": {"name": "in", "namespace": %q, "annotations": {%s}}, "status": {%s},
 "spec": {"selector": {"app": "ingress"}, "clusterIP": "10.2.0.9", "ports": [{"port": 443, "targetPort": "ingress", "nodePort": 30101}], %s}}`,
		resources.DefaultSystemNamespace, annotations, status, spec)
	o, err := apiserver.Parse(json.RawMessage(document))
	must(t, err)
	return o
}

func addressedNode(t testing.TB, addresses string) *apiserver.Object {
	t.Helper()
	o, err := apiserver.Parse(json.RawMessage(`{"kind": "Node", "metadata": {"name": "node-1"}, "status": {"addresses": [` + addresses + `]}}`))
	must(t, err)
	return o
}

const (
	balanced = `"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}`
	internal = `{"type": "Hostname", "address": "node-1"}, {"type": "InternalIP", "address": "10.0.0.1"}`
)

// TestIngressAddresses: where other zones reach a zone ingress, by what its Service is, and what is said where that is
// not known.
func TestIngressAddresses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec, status, annotations, node, want string
	}{
		"a load balancer":            {`"type": "LoadBalancer"`, balanced, "", internal, "192.0.2.1:443"},
		"one of IPv6":                {`"type": "LoadBalancer"`, `"loadBalancer": {"ingress": [{"ip": "2001:db8::1"}]}`, "", internal, "2001:db8::1:443"},
		"one without an address yet": {`"type": "LoadBalancer"`, "", "", internal, "Service in has no address of a load balancer yet"},
		"one with an address of each machine": {`"type": "LoadBalancer"`, `"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}, {"ip": "::ffff:127.0.0.1"}, {"ip": "fe80::1"}, {"ip": "169.254.169.254"}]}`,
			"", internal, "Service in has no address of a load balancer yet"},
		"one with an address for others, too": {`"type": "LoadBalancer"`, `"loadBalancer": {"ingress": [{"ip": "0.0.0.0"}, {"ip": "192.0.2.1"}]}`, "", internal, "192.0.2.1:443"},
		"one with a name": {`"type": "LoadBalancer"`, `"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}`, "", internal,
			"the name lb.example, which does not resolve to an address that others reach: no such host"},
		"one with a name that resolves": {`"type": "LoadBalancer"`, `"loadBalancer": {"ingress": [{"hostname": "known.example"}]}`, "", internal,
			"192.0.2.3:443"},
		"one with a name, and an address is set": {`"type": "LoadBalancer"`, `"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}`,
			`"kuma.io/ingress-public-address": "192.0.2.9"`, internal, "192.0.2.9:443"},
		"a port of the node": {`"type": "NodePort"`, "", "", internal, "10.0.0.1:30101"},
		"a port of the node, which has an external address": {`"type": "NodePort"`, "", "",
			internal + `, {"type": "ExternalIP", "address": "198.51.100.1"}`, "198.51.100.1:30101"},
		"a port of a node without an address": {`"type": "NodePort"`, "", "", "", "the pod's node has no address"},
		"inside of the cluster":               {`"type": "ClusterIP"`, "", "", internal, "of type ClusterIP, which other zones do not reach"},
		"something of their own": {`"type": "ClusterIP"`, "", `"kuma.io/ingress-public-address": "192.0.2.7", "kuma.io/ingress-public-port": "8443"`,
			internal, "192.0.2.7:8443"},
		"a name is set":        {`"type": "ClusterIP"`, "", `"kuma.io/ingress-public-address": "lb.example"`, internal, `("lb.example")`},
		"no port is set":       {`"type": "ClusterIP"`, "", `"kuma.io/ingress-public-address": "192.0.2.7", "kuma.io/ingress-public-port": "x"`, internal, `("x")`},
		"everywhere":           {`"type": "ClusterIP"`, "", `"kuma.io/ingress-public-address": "0.0.0.0"`, internal, "want an IP address"},
		"no address":           {`"type": "ClusterIP", "clusterIP": "None"`, "", "", internal, "no Service leads to the port named ingress"},
		"a Service for others": {`"type": "NodePort", "selector": {"app": "other"}`, "", "", internal, "no Service leads to the port named ingress"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := readPod(ingressPod(t, "in-1", "10.1.0.1"))
			must(t, err)
			s, err := readService(ingressService(t, c.spec, c.status, c.annotations))
			must(t, err)
			n, err := readNode(addressedNode(t, c.node))
			must(t, err)
			r, problems, err := IngressOf(p, []*Service{s}, n, map[string]host{"known.example": {address: "192.0.2.3"},
				"lb.example": {failed: errors.New("no such host")}})
			must(t, err)
			got := fmt.Sprint(problems)
			if r != nil {
				var spec struct {
					Networking struct {
						Address, AdvertisedAddress string
						Port, AdvertisedPort       int
					}
				}
				must(t, json.Unmarshal(r.Spec.JSON(), &spec))
				if is := spec.Networking; is.Address != "10.1.0.1" || is.Port != 10001 || len(problems) > 0 {
					t.Errorf("it listens on %s:%d, %v", is.Address, is.Port, problems)
				}
				got = fmt.Sprintf("%s:%d", spec.Networking.AdvertisedAddress, spec.Networking.AdvertisedPort)
				must(t, resources.Validate(r, home))
			}
			if r != nil && got != c.want || r == nil && !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestIngressBehindSeveralServices: a Service that only the cluster reaches does not hide the one that others reach,
// whatever their names.
func TestIngressBehindSeveralServices(t *testing.T) {
	t.Parallel()
	p, err := readPod(ingressPod(t, "in-1", "10.1.0.1"))
	must(t, err)
	inside, err := readService(ingressService(t, `"type": "ClusterIP"`, "", ""))
	must(t, err)
	inside.Metadata.Name = "a"
	balancer, err := readService(ingressService(t, `"type": "LoadBalancer"`, balanced, ""))
	must(t, err)
	if r, problems, err := IngressOf(p, []*Service{inside, balancer}, nil, nil); r == nil || err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	balancer.Status = serviceStatus{}
	if _, problems, _ := IngressOf(p, []*Service{inside, balancer}, nil, nil); len(problems) != 1 || !strings.Contains(problems[0].Message, "Service a is") {
		t.Errorf("none has an address: %v", problems)
	}
}

// ingresses lists the ZoneIngresses in the store, and where others reach them.
func (g *rig) ingresses() string {
	var out []string
	for r := range g.store.Snapshot().List(store.Query{Type: resources.TypeZoneIngress}) {
		var spec struct {
			Networking struct{ AdvertisedAddress string }
		}
		must(g.t, json.Unmarshal(r.Spec.JSON(), &spec))
		text := r.Name + " " + spec.Networking.AdvertisedAddress
		if !home.Discovered(r) {
			text += " of a user"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// TestIngressFollows: a ZoneIngress follows its pod and its Service. It never has an address that nobody has given it,
// and keeps the last one that it had; it goes before its pod, also when the pod goes while discovery is away.
func TestIngressFollows(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	system := parsed(t, m{"kind": "Namespace", "metadata": m{"name": resources.DefaultSystemNamespace}})
	list := func(service *apiserver.Object, pods ...*apiserver.Object) map[string][]*apiserver.Object {
		return map[string][]*apiserver.Object{"namespaces": {system}, "nodes": {addressedNode(t, internal)}, "pods": pods,
			"services": {service}}
	}
	expect := func(when, want string) {
		t.Helper()
		g.settled()
		if got := g.ingresses(); got != want {
			t.Errorf("%s: the store has %q, want %q", when, got, want)
		}
	}
	first, second := ingressPod(t, "in-1", "10.1.0.1"), ingressPod(t, "in-2", "10.1.0.2")
	pending, given := ingressService(t, `"type": "LoadBalancer"`, "", ""), ingressService(t, `"type": "LoadBalancer"`, balanced, "")
	g.list(list(pending, first))
	expect("no address yet", "")
	if reasons := g.reasons[object{kind: "Pod", namespace: resources.DefaultSystemNamespace, name: "in-1"}]; len(reasons) != 1 || reasons[0] != ReasonNoAddress {
		t.Errorf("the pod is told of %v", reasons)
	}
	g.of("services").Changed(given)
	expect("the load balancer has one", "in-1 192.0.2.1")
	g.of("services").Changed(pending)
	g.of("pods").Changed(second)
	expect("it has lost it, and another pod begins", "in-1 192.0.2.1")
	g.of("services").Changed(given)
	expect("it is back", "in-1 192.0.2.1, in-2 192.0.2.1")
	g.of("services").Changed(ingressService(t, `"type": "NodePort"`, "", ""))
	expect("ports of nodes", "in-1 10.0.0.1, in-2 10.0.0.1")
	g.of("nodes").Changed(addressedNode(t, `{"type": "ExternalIP", "address": "198.51.100.1"}`))
	expect("the node has another address", "in-1 198.51.100.1, in-2 198.51.100.1")
	g.of("pods").Changed(ingressPod(t, "in-1", "10.1.0.1", leaving))
	expect("one is being deleted", "in-2 198.51.100.1")
	g.restart()
	g.list(list(given, first))
	expect("the other went while discovery was away", "in-1 192.0.2.1")
	g.of("pods").Deleted(first)
	expect("both are gone", "")

	spec, err := resources.NewSpec(resources.TypeZoneIngress, []byte(`{"networking": {"address": "192.0.2.5", "port": 1}}`))
	must(t, err)
	users := home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeZoneIngress, Name: "in-1"}, Spec: spec})
	g.apply(store.Op{Put: users})
	g.of("pods").Changed(first)
	expect("a user's has the name", "in-1  of a user")
	g.apply(store.Op{Delete: users.Key})
	expect("the user's is gone", "in-1 192.0.2.1")
}

// TestIngressHandsOver: the ZoneIngress of a pod that is being deleted stays for half of the time for which its proxy serves
// on, also when discovery begins anew meanwhile, and no longer than its pod.
func TestIngressHandsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		system := parsed(t, m{"kind": "Namespace", "metadata": m{"name": resources.DefaultSystemNamespace}})
		objects := map[string][]*apiserver.Object{"namespaces": {system}, "nodes": {addressedNode(t, internal)},
			"services": {ingressService(t, `"type": "LoadBalancer"`, balanced, "")}}
		expect := func(when string, after time.Duration, want string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			g.settled()
			if got := g.ingresses(); got != want {
				t.Errorf("%s: the store has %q, want %q", when, got, want)
			}
		}
		pod := func(phase string, sleep, grace int, more ...func(m)) *apiserver.Object {
			o := ingressPod(t, "in-1", "10.1.0.1", more...)
			var raw m
			must(t, json.Unmarshal(o.Raw, &raw))
			raw["metadata"].(m)["deletionGracePeriodSeconds"] = grace
			raw["status"].(m)["phase"] = phase
			raw["spec"].(m)["containers"].([]any)[0].(m)["lifecycle"] = m{"preStop": m{"sleep": m{"seconds": sleep}}}
			return parsed(t, raw)
		}
		there := func(sleep, grace int) {
			t.Helper()
			g.of("pods").Changed(pod("Running", sleep, grace))
			expect("there", 0, "in-1 192.0.2.1")
		}
		leaves := func(phase string, sleep, grace int) *apiserver.Object {
			ends := time.Now().Add(time.Duration(grace) * time.Second).UTC().Format(time.RFC3339)
			return pod(phase, sleep, grace, func(metadata m) { metadata["deletionTimestamp"] = ends })
		}
		g.list(objects)
		time.Sleep(700 * time.Millisecond) // the API server writes whole seconds

		there(30, 40)
		leaving := leaves("Running", 30, 40)
		g.of("pods").Changed(leaving)
		expect("being deleted", 15*time.Second-1, "in-1 192.0.2.1")
		expect("half of the time later", 1, "")

		there(30, 40)
		leaving = leaves("Running", 30, 40)
		time.Sleep(10 * time.Second)
		g.restart()
		objects["pods"] = []*apiserver.Object{leaving}
		g.list(objects)
		expect("discovery begins anew", 5*time.Second, "in-1 192.0.2.1")
		expect("half of the time after the deletion", time.Second, "")

		there(30, 40)
		g.of("pods").Changed(leaves("Running", 30, 2))
		expect("being deleted in a hurry", time.Second-1, "in-1 192.0.2.1")
		expect("half of that time later", 1, "")

		there(30, 40)
		g.of("pods").Changed(leaves("Running", 30, 40))
		expect("being deleted, with time", time.Second, "in-1 192.0.2.1")
		g.of("pods").Changed(leaves("Running", 30, 4))
		expect("being deleted once more, in a hurry", 2*time.Second-1, "in-1 192.0.2.1")
		expect("half of the time that is left later", 1, "")

		there(30, 40)
		g.of("pods").Changed(leaves("Running", 30, 40))
		expect("being deleted again", 0, "in-1 192.0.2.1")
		g.of("pods").Changed(leaves("Failed", 30, 40))
		expect("its proxy has ended", 0, "")

		there(0, 40)
		g.of("pods").Changed(leaves("Running", 0, 40))
		expect("a proxy that ends at once", 0, "")

		there(30, 40)
		leaving = leaves("Running", 30, 40)
		g.of("pods").Changed(leaving)
		expect("being deleted once more", 0, "in-1 192.0.2.1")
		g.of("pods").Deleted(leaving)
		expect("gone", 0, "")
	})
}

// TestIngressWithAName: the address of a load balancer that has a name follows it, and stays while it is one of those that
// the name resolves to, and while it does not resolve.
func TestIngressWithAName(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	system := parsed(t, m{"kind": "Namespace", "metadata": m{"name": resources.DefaultSystemNamespace}})
	g.list(map[string][]*apiserver.Object{"namespaces": {system}, "nodes": {addressedNode(t, internal)},
		"pods":     {ingressPod(t, "in-1", "10.1.0.1")},
		"services": {ingressService(t, `"type": "LoadBalancer"`, `"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}`, "")}})
	if got := fmt.Sprint(g.hosts()); got != "[lb.example]" {
		t.Errorf("it asks for %s", got)
	}
	select {
	case <-g.named:
	default:
		t.Error("nobody is told of the name")
	}
	for _, c := range []struct {
		answer []string
		err    error
		want   string
	}{
		{nil, errors.New("no such host"), ""}, {[]string{"192.0.2.2", "192.0.2.1"}, nil, "in-1 192.0.2.1"},
		{[]string{"192.0.2.3", "192.0.2.1"}, nil, "in-1 192.0.2.1"}, {nil, errors.New("timeout"), "in-1 192.0.2.1"},
		{[]string{"::ffff:192.0.2.9"}, nil, "in-1 192.0.2.9"}, {[]string{"127.0.0.1", "::1"}, nil, "in-1 192.0.2.9"},
	} {
		var all []netip.Addr
		for _, text := range c.answer {
			all = append(all, netip.MustParseAddr(text))
		}
		g.resolved("lb.example", all, c.err)
		g.settled()
		if got := g.ingresses(); got != c.want {
			t.Errorf("after %v, %v: the store has %q, want %q", c.answer, c.err, got, c.want)
		}
	}
}

// TestIngressOutsideOfTheSystemNamespace: a pod that looks like a zone ingress in a user's namespace is none.
func TestIngressOutsideOfTheSystemNamespace(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	p := ingressPod(t, "in-1", "10.1.0.1", func(metadata m) { metadata["namespace"] = "shop" })
	all := g.shop(p)
	service := ingressService(t, `"type": "LoadBalancer"`, balanced, "")
	service.Raw = json.RawMessage(strings.Replace(string(service.Raw), resources.DefaultSystemNamespace, "shop", 1))
	service.Meta.Namespace = "shop"
	all["services"] = append(all["services"], service)
	g.list(all)
	g.settled()
	if got := g.ingresses(); got != "" {
		t.Errorf("the store has %s", got)
	}
}
