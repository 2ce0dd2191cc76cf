package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/kubernetes/images"
	"github.com/causeway-mesh/causeway/test/kubernetes/node"
)

// patience is how long anything that happens by itself may take.
const patience = 2 * time.Minute

// The system namespaces: each server has one of its own. zone-2 has the usual one.
const (
	globalNamespace = "mesh-global"
	zoneNamespace   = "mesh-one"
	otherNamespace  = "mesh-three"
)

const (
	globalSet = "global-causeway-global"
	zoneSet   = "zone-1-causeway-zone"
	otherSet  = "zone-3-causeway-zone"
	meshName  = "default"
)

// pods are the workloads of zone-1.
//
//go:embed pods.yaml
var pods string

// otherPods are those of zone-3.
//
//go:embed pods_other.yaml
var otherPods string

// ingressPort is where other zones reach the zone ingress of zone-1, at an address of this machine.
const ingressPort = 10001

// mesh is everything that the demo starts.
type mesh struct {
	out                   io.Writer
	root, dir, bin, envoy string
	// global, one and three are clusters: of the global, of zone-1 and of zone-3.
	global, one, three *node.Node
	// links lead from this machine to the global and to the zone ingress of zone-1.
	links []*cluster.Link
	// beside are the processes on this machine: zone-2 and its Envoys.
	beside    *cluster.Cluster
	two       *cluster.Server
	workloads map[string]*cluster.Workload
	clients   map[string]*cluster.Client
}

func (m *mesh) start(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"starting three clusters", m.startClusters},
		{"loading the images of servers and Envoy", m.loadImages},
		{"installing the global in the namespace " + globalNamespace, m.installGlobal},
		{"installing zone-1 in the namespace " + zoneNamespace + ", with a zone ingress", m.installZone},
		{"installing zone-3 in the namespace " + otherNamespace, m.installOther},
		{"starting zone-2 beside the clusters, with Envoys and clients", m.startBeside},
		{"starting pods with proxies in zone-1 and zone-3", m.startPods},
	} {
		if err := m.step(step.what, func() error { return step.do(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func (m *mesh) startClusters(ctx context.Context) error {
	start := func(name string) (*node.Node, error) {
		return node.Start(ctx, node.Config{Programs: filepath.Join(m.root, ".tools", "kubernetes"), Dir: filepath.Join(m.dir, name), Patience: patience})
	}
	for name, into := range map[string]**node.Node{"global": &m.global, zone1: &m.one, zone3: &m.three} {
		var err error
		if *into, err = start(name); err != nil {
			return err
		}
	}
	return nil
}

func (m *mesh) loadImages(ctx context.Context) error {
	envoy, err := images.Envoy(ctx, m.root)
	if err != nil {
		return err
	}
	curl, err := images.Linked(ctx, "localhost/curl:dev", "curl", "sleep")
	if err != nil {
		return err
	}
	if err := m.global.Load(ctx, images.Server(m.root, m.bin, "causeway-global")); err != nil {
		return err
	}
	for _, k := range []*node.Node{m.one, m.three} {
		for _, image := range []*node.Image{images.Server(m.root, m.bin, "causeway-zone"), envoy, curl} {
			if err := k.Load(ctx, image); err != nil {
				return err
			}
		}
	}
	return nil
}

// ctl runs causewayctl on this machine.
func (m *mesh) ctl(ctx context.Context, args ...string) (string, error) {
	c, err := cluster.New(cluster.Config{Bin: m.bin, Dir: m.dir})
	if err != nil {
		return "", err
	}
	out, err := c.Output(ctx, nil, "causewayctl", args...)
	return string(out), err
}

// install gives a cluster the definitions, and a server whose users write by kubectl.
func (m *mesh) install(ctx context.Context, k *node.Node, server, name, namespace string, set ...string) error {
	definitions, err := m.ctl(ctx, "install", "crds")
	if err != nil {
		return err
	}
	args := []string{"install", server, "--name", name, "--namespace", namespace}
	for _, one := range append(set, "image.tag=dev", "kubernetes.enabled=true", "persistence.enabled=false") {
		args = append(args, "--set", one)
	}
	manifests, err := m.ctl(ctx, args...)
	if err != nil {
		return err
	}
	if err := apply(ctx, k, definitions, "--server-side"); err != nil {
		return err
	}
	if _, err := kubectl(ctx, k, "wait", "--for=condition=Established", "crd", "-l", "app.kubernetes.io/part-of=causeway", "--timeout=60s"); err != nil {
		return err
	}
	if err := apply(ctx, k, manifests); err != nil {
		return err
	}
	_, err = kubectl(ctx, k, "-n", namespace, "rollout", "status", "statefulset/"+name+"-causeway-"+server, "--timeout=120s")
	return err
}

// installGlobal also opens the link by which zones reach the global: pods of one cluster do not reach the other.
func (m *mesh) installGlobal(ctx context.Context) error {
	address := m.one.Machine + ":5685"
	if err := m.install(ctx, m.global, "global", "global", globalNamespace, "kds.advertiseAddress="+address); err != nil {
		return err
	}
	service, err := kubectl(ctx, m.global, "-n", globalNamespace, "get", "service", globalSet, "-o", "jsonpath={.spec.clusterIP}")
	if err != nil {
		return err
	}
	return m.lead(ctx, address, service+":5685")
}

// lead opens a link from an address of this machine.
func (m *mesh) lead(ctx context.Context, address, to string) error {
	link, err := cluster.NewLinkAt(ctx, address, to)
	if err == nil {
		m.links = append(m.links, link)
	}
	return err
}

// join is a join string for a zone.
func (m *mesh) join(ctx context.Context, zone string) (string, error) {
	out, err := kubectl(ctx, m.global, "-n", globalNamespace, "exec", globalSet+"-0", "--", "/usr/bin/causewayctl", "zone", "create", zone)
	if err != nil {
		return "", err
	}
	for _, word := range strings.Fields(out) {
		if strings.HasPrefix(word, "causeway-join:") {
			return word, nil
		}
	}
	return "", fmt.Errorf("no join string in: %s", out)
}

// installZone also opens the link by which other zones reach the zone ingress.
func (m *mesh) installZone(ctx context.Context) error {
	err := m.installZoneIn(ctx, m.one, zone1, zoneNamespace, "accessLog=als", "ingress.enabled=true", "ingress.replicas=1",
		"ingress.service.type=ClusterIP", "ingress.address="+m.one.Machine, fmt.Sprint("ingress.port=", ingressPort))
	if err != nil {
		return err
	}
	service, err := kubectl(ctx, m.one, "-n", zoneNamespace, "get", "service", zoneSet+"-ingress", "-o", "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")
	if err != nil {
		return err
	}
	return m.lead(ctx, fmt.Sprintf("%s:%d", m.one.Machine, ingressPort), service)
}

// installOther installs zone-3, which resolves names of services.
func (m *mesh) installOther(ctx context.Context) error {
	return m.installZoneIn(ctx, m.three, zone3, otherNamespace, "dns.enabled=true")
}

// installZoneIn installs a zone that gives pods their proxies in a cluster.
func (m *mesh) installZoneIn(ctx context.Context, k *node.Node, zone, namespace string, set ...string) error {
	join, err := m.join(ctx, zone)
	if err != nil {
		return err
	}
	if err := apply(ctx, k, fmt.Sprintf(`{"apiVersion": "v1", "kind": "List", "items": [
 {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %[1]q}},
 {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "join", "namespace": %[1]q}, "stringData": {"join": %[2]q}}]}`, namespace, join)); err != nil {
		return err
	}
	return m.install(ctx, k, "zone", zone, namespace, append(set, "join.secretName=join", "injection.enabled=true",
		"injection.envoyImage=localhost/envoy:dev")...)
}

func (m *mesh) startBeside(ctx context.Context) error {
	join, err := m.join(ctx, zone2)
	if err != nil {
		return err
	}
	if m.beside, err = cluster.New(cluster.Config{Bin: m.bin, Envoy: m.envoy, Dir: filepath.Join(m.dir, "beside")}); err != nil {
		return err
	}
	if m.two, err = m.beside.StartZone(ctx, cluster.ZoneConfig{Name: zone2, Args: []string{"--join", join}}); err != nil {
		return err
	}
	workload := func(namespace, name string) cluster.WorkloadConfig {
		return cluster.WorkloadConfig{Zone: m.two, Mesh: meshName, Namespace: namespace, Name: name, ServiceAccount: name}
	}
	backend := workload("backend-ns", "backend")
	backend.Labels = map[string]string{"app": "backend"}
	backend.Inbounds = []cluster.InboundConfig{{Name: httpPort, Protocol: cluster.ProtocolHTTP}}
	if m.workloads[backend2], err = m.beside.StartWorkload(ctx, backend); err != nil {
		return err
	}
	caller := workload("default", "frontend")
	caller.Inbounds = backend.Inbounds
	caller.Outbounds = []cluster.OutboundConfig{{Name: "backend", BackendRef: map[string]any{"kind": "MeshService", "port": 80,
		"labels": map[string]any{"kuma.io/display-name": "backend", "kuma.io/zone": zone1}}}}
	if m.workloads[frontend2], err = m.beside.StartWorkload(ctx, caller); err != nil {
		return err
	}
	for key, namespace := range map[string]string{gateway: "default", malicious: "default", prometheus2: "observability"} {
		_, name, _ := strings.Cut(key, "/")
		dataplane := workload(namespace, name)
		id, err := cluster.RegisterClient(ctx, dataplane, zone2)
		if err != nil {
			return err
		}
		m.clients[key] = cluster.NewClient(id, false)
		// It has no proxy: policies would wait for one.
		if err := m.two.API.Delete(ctx, dataplane.Path()+dataplane.Query()); err != nil {
			return err
		}
	}
	return nil
}

func (m *mesh) startPods(ctx context.Context) error {
	all := map[*node.Node]string{m.one: pods, m.three: otherPods}
	for k, manifests := range all {
		if err := cluster.Until(ctx, patience, "the pods to be taken", func(ctx context.Context) error { return apply(ctx, k, manifests) }); err != nil {
			return err
		}
	}
	for k := range all {
		if _, err := kubectl(ctx, k, "wait", "--for=condition=Ready", "pod", "-A", "-l", "demo=workload", "--timeout=120s"); err != nil {
			return err
		}
	}
	return nil
}

// apply applies manifests.
func apply(ctx context.Context, k *node.Node, manifests string, args ...string) error {
	if out, err := k.Apply(ctx, manifests, args...); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, out)
	}
	return nil
}

// kubectl runs a command and returns what it prints.
func kubectl(ctx context.Context, k *node.Node, args ...string) (string, error) {
	out, err := k.Kubectl(ctx, args...)
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return out, nil
}

// close stops everything.
func (m *mesh) close() error {
	for _, c := range m.clients {
		c.Close()
	}
	for _, w := range m.workloads {
		if w != nil {
			w.Close()
		}
	}
	var group errgroup.Group
	if m.beside != nil {
		group.Go(m.beside.Close)
	}
	for _, k := range []*node.Node{m.global, m.one, m.three} {
		if k != nil {
			group.Go(k.Stop)
		}
	}
	err := group.Wait()
	for _, link := range m.links {
		err = errors.Join(err, link.Close())
	}
	return err
}

// tails shows what the servers said last, and what became of their pods.
func (m *mesh) tails(w io.Writer) {
	ctx := context.Background()
	for _, s := range []struct {
		k              *node.Node
		namespace, pod string
	}{{m.global, globalNamespace, globalSet + "-0"}, {m.one, zoneNamespace, zoneSet + "-0"}, {m.three, otherNamespace, otherSet + "-0"}} {
		if s.k == nil {
			continue
		}
		for _, args := range [][]string{{"describe", "pod", s.pod}, {"logs", s.pod, fmt.Sprint("--tail=", tailLines)}} {
			out, _ := s.k.Kubectl(ctx, append([]string{"-n", s.namespace}, args...)...)
			fmt.Fprintln(w, out)
		}
	}
	if m.beside != nil {
		m.beside.Tails(w, tailLines)
	}
}
