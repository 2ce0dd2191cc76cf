package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
)

// labelPodName has the name of a pod of a StatefulSet. Source: Kubernetes.
const labelPodName = "statefulset.kubernetes.io/pod-name"

// MeshServicesOf returns the MeshServices of a Service, without the labels that the server computes: one and, for a
// headless Service, another for each of its pods, which its name resolves to. pods are those of its namespace. A
// Service is in the mesh if its namespace asks for proxies, if it names a mesh, or if a pod with a proxy is behind it.
func MeshServicesOf(s *Service, ns *Namespace, pods []*Pod) ([]*resources.Resource, error) {
	if !s.fronts() || s.ignored() || slices.Contains(outside, s.Metadata.Namespace) {
		return nil, nil
	}
	behind := slices.DeleteFunc(slices.Clone(pods), func(p *Pod) bool { return !p.present() || !s.selects(p) })
	if !ns.asksForProxies() && s.Metadata.Labels[resources.LabelMesh] == "" && len(behind) == 0 {
		return nil, nil
	}
	if s.crowded() { // before each pod behind it costs as much
		return nil, fmt.Errorf("it has more than %d ports", resources.MaxServicePorts)
	}
	spec := resources.MeshService{Selector: resources.MeshServiceSelector{
		DataplaneLabels: &resources.LabelSelector{MatchLabels: s.Spec.Selector}}, Ports: s.ports()}
	if len(spec.Ports) == 0 {
		return nil, nil
	}
	whole, err := s.resource(s.Metadata.Name, meshOf(ns, s), &spec, s.addresses())
	if err != nil {
		return nil, err
	}
	out := []*resources.Resource{whole}
	if !s.headless() {
		return out, nil
	}
	for _, p := range behind {
		if p.proxy().mesh != whole.Mesh {
			continue
		}
		one, err := s.ofPod(p, whole.Mesh)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// ofPod returns the MeshService of one pod behind a headless Service. It has the ports of the Service and, because the
// name resolves to the pod itself, the matching ports of the pod. Only pods of StatefulSets keep their names, so only
// those are known to other zones.
func (s *Service) ofPod(p *Pod, mesh string) (*resources.Resource, error) {
	spec := resources.MeshService{Selector: resources.MeshServiceSelector{
		DataplaneRef: &resources.DataplaneRef{Name: p.Metadata.Name}}, Ports: s.ports()}
	named := p.named()
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		number := port.target(named)
		if number == 0 || !isTCP(port.Protocol) || len(spec.Ports) >= resources.MaxServicePorts ||
			slices.ContainsFunc(spec.Ports, func(has resources.MeshServicePort) bool { return has.Port == number }) {
			continue
		}
		spec.Ports = append(spec.Ports, resources.MeshServicePort{Port: number, AppProtocol: appProtocol(port.AppProtocol)})
	}
	out, err := s.resource(podServiceName(s, p), mesh, &spec, p.addresses())
	if err != nil {
		return nil, err
	}
	if p.Metadata.Labels[labelPodName] == p.Metadata.Name {
		out.Labels[labelPodName] = p.Metadata.Name
	} else {
		out.Labels[resources.LabelSync] = resources.SyncDisabled
	}
	return out, nil
}

// podServiceName returns the name of the MeshService of a pod behind a headless Service: a DNS label that identifies
// the pod.
func podServiceName(s *Service, p *Pod) string {
	hashed := hashing.Name("", p.Metadata.Name, s.Metadata.Name)
	suffix := hashed[strings.LastIndexByte(hashed, '-'):]
	prefix := strings.ReplaceAll(p.Metadata.Name, ".", "-")
	if most := resources.MaxShortNameBytes - len(suffix); len(prefix) > most {
		prefix = prefix[:most]
	}
	return strings.TrimRight(prefix, "-") + suffix
}

// resource returns a MeshService of the Service.
func (s *Service) resource(name, mesh string, of *resources.MeshService, addresses []string) (*resources.Resource, error) {
	spec, err := resources.NewSpecOf(resources.TypeMeshService, of)
	if err != nil {
		return nil, err
	}
	labels := carried(s.Metadata.Labels)
	labels[resources.LabelServiceName], labels[resources.LabelHeadless] = s.Metadata.Name, strconv.FormatBool(s.headless())
	labels[resources.LabelManagedBy] = resources.ManagedByDiscovery
	out := &resources.Resource{Spec: spec, Labels: labels, Key: resources.Key{Type: resources.TypeMeshService, Mesh: mesh,
		Namespace: s.Metadata.Namespace, Name: name}}
	if len(addresses) > 0 {
		out.Status, err = vips(addresses)
	}
	return out, err
}

// addresses returns the ClusterIPs of the Service, of all families.
func (s *Service) addresses() []string {
	var out []string
	for _, ip := range append(slices.Clone(s.Spec.ClusterIPs), s.Spec.ClusterIP) {
		if ip != "" && ip != "None" && !slices.Contains(out, ip) {
			out = append(out, ip)
		}
	}
	return out
}

// vips returns the status of a MeshService with addresses.
func vips(addresses []string) (json.RawMessage, error) {
	type vip struct {
		IP string `json:"ip"`
	}
	var status struct {
		VIPs []vip `json:"vips"`
	}
	for _, ip := range addresses {
		status.VIPs = append(status.VIPs, vip{ip})
	}
	return json.Marshal(status)
}

// crowded reports whether the Service has more ports than a MeshService may have.
func (s *Service) crowded() bool {
	n := 0
	for i := range s.Spec.Ports {
		if isTCP(s.Spec.Ports[i].Protocol) {
			n++
		}
	}
	return n > resources.MaxServicePorts
}

// ports returns the TCP ports of the MeshService.
func (s *Service) ports() []resources.MeshServicePort {
	var out []resources.MeshServicePort
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		if !isTCP(port.Protocol) {
			continue
		}
		one := resources.MeshServicePort{Name: port.Name, Port: port.Port, AppProtocol: appProtocol(port.AppProtocol)}
		if number, name := port.targetPort(); name != "" || number != port.Port {
			one.TargetPort = bytes.TrimSpace(port.TargetPort)
		}
		out = append(out, one)
	}
	return out
}

// targetPort returns a Service's target port, as a number or as the name of a port of the pod.
func (port *servicePort) targetPort() (number uint32, name string) {
	raw := bytes.TrimSpace(port.TargetPort)
	if len(raw) > 0 && json.Unmarshal(raw, &name) == nil && name != "" {
		return 0, name
	}
	if json.Unmarshal(raw, &number) == nil && number != 0 {
		return number, ""
	}
	return port.Port, ""
}

// appProtocols maps protocols of Services to the mesh's names. Source: Kubernetes' standard names.
var appProtocols = map[string]string{
	"http": "http", "http2": "http2", "grpc": "grpc", "kafka": "kafka", "tcp": "tcp",
	"kubernetes.io/h2c": "http2", "kubernetes.io/ws": "http",
}

// appProtocol returns the protocol of a port. One that the proxy does not read, such as https, counts as bytes.
func appProtocol(of string) string {
	if of == "" {
		return ""
	}
	if known, ok := appProtocols[strings.ToLower(of)]; ok {
		return known
	}
	return "tcp"
}
