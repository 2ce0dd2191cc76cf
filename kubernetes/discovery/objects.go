package discovery

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
)

// The parts of Kubernetes objects that discovery reads. Source: the API of Kubernetes, v1.
type (
	// Metadata identifies an object, and has its labels.
	Metadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace,omitempty"`
		UID       string            `json:"uid,omitempty"`
		Labels    map[string]string `json:"labels,omitempty"`
		// DeletionTimestamp is set once the object is being deleted: when it has to be gone, this long after the request.
		DeletionTimestamp          string `json:"deletionTimestamp,omitempty"`
		DeletionGracePeriodSeconds int64  `json:"deletionGracePeriodSeconds,omitempty"`
	}

	// Namespace reports whether its pods ask for proxies, and their mesh.
	Namespace struct {
		Metadata Metadata `json:"metadata"`
	}

	// Node has the location of its pods, and the addresses of its ports.
	Node struct {
		Metadata Metadata   `json:"metadata"`
		Status   nodeStatus `json:"status"`
	}
	nodeStatus struct {
		Addresses []nodeAddress `json:"addresses,omitempty"`
	}
	nodeAddress struct {
		Type    string `json:"type"`
		Address string `json:"address"`
	}

	// Pod may have a proxy.
	Pod struct {
		Metadata Metadata  `json:"metadata"`
		Spec     podSpec   `json:"spec"`
		Status   podStatus `json:"status"`
	}
	podSpec struct {
		NodeName           string      `json:"nodeName,omitempty"`
		ServiceAccountName string      `json:"serviceAccountName,omitempty"`
		HostNetwork        bool        `json:"hostNetwork,omitempty"`
		InitContainers     []container `json:"initContainers,omitempty"`
		Containers         []container `json:"containers,omitempty"`
	}
	container struct {
		Name          string                    `json:"name"`
		Args          []string                  `json:"args,omitempty"`
		RestartPolicy string                    `json:"restartPolicy,omitempty"`
		Ports         []injection.ContainerPort `json:"ports,omitempty"`
		Env           []injection.Variable      `json:"env,omitempty"`
		// Lifecycle is that of a zone ingress, in what is kept of a pod.
		Lifecycle *lifecycle `json:"lifecycle,omitempty"`
		// Record is that of the proxy's container. It takes the place of Env, in what is kept of a pod.
		Record *injection.Record `json:"record,omitempty"`
	}
	lifecycle struct {
		PreStop *struct {
			Sleep *struct {
				Seconds int64 `json:"seconds"`
			} `json:"sleep,omitempty"`
		} `json:"preStop,omitempty"`
	}
	podStatus struct {
		Phase      string         `json:"phase,omitempty"`
		PodIP      string         `json:"podIP,omitempty"`
		PodIPs     []podIP        `json:"podIPs,omitempty"`
		Conditions []podCondition `json:"conditions,omitempty"`
		// InitContainerStatuses has the container that captures, once it has failed, and the proxy's until it has started, unless
		// one of the application's has already.
		InitContainerStatuses []containerStatus `json:"initContainerStatuses,omitempty"`
		ContainerStatuses     []containerStatus `json:"containerStatuses,omitempty"`
	}
	containerStatus struct {
		Name         string         `json:"name"`
		Started      bool           `json:"started,omitempty"`
		RestartCount int            `json:"restartCount,omitempty"`
		State        containerState `json:"state"`
		LastState    containerState `json:"lastState"`
	}
	containerState struct {
		Running    *struct{} `json:"running,omitempty"`
		Terminated *struct {
			ExitCode int `json:"exitCode"`
		} `json:"terminated,omitempty"`
	}
	podIP struct {
		IP string `json:"ip"`
	}
	podCondition struct {
		Type   string `json:"type"`
		Status string `json:"status"`
	}

	// Service is a name for pods.
	Service struct {
		Metadata serviceMetadata `json:"metadata"`
		Spec     serviceSpec     `json:"spec"`
		Status   serviceStatus   `json:"status"`
	}
	serviceMetadata struct {
		Metadata
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	serviceSpec struct {
		Type                     string            `json:"type,omitempty"`
		Selector                 map[string]string `json:"selector,omitempty"`
		ClusterIP                string            `json:"clusterIP,omitempty"`
		ClusterIPs               []string          `json:"clusterIPs,omitempty"`
		PublishNotReadyAddresses bool              `json:"publishNotReadyAddresses,omitempty"`
		Ports                    []servicePort     `json:"ports,omitempty"`
	}
	servicePort struct {
		Name        string `json:"name,omitempty"`
		Port        uint32 `json:"port"`
		Protocol    string `json:"protocol,omitempty"`
		AppProtocol string `json:"appProtocol,omitempty"`
		NodePort    uint32 `json:"nodePort,omitempty"`
		// TargetPort is a number or the name of a port of a container.
		TargetPort json.RawMessage `json:"targetPort,omitempty"`
	}
	serviceStatus struct {
		LoadBalancer loadBalancer `json:"loadBalancer"`
	}
	loadBalancer struct {
		Ingress []loadBalancerIngress `json:"ingress,omitempty"`
	}
	loadBalancerIngress struct {
		IP       string `json:"ip,omitempty"`
		Hostname string `json:"hostname,omitempty"`
	}
)

// maxPorts limits the ports of a pod that are kept: more than its proxy can serve. What a namespace's author writes there is
// compared with all of the namespace's Services, again with each change.
const maxPorts = 1000

// annotationIgnore keeps a Service out of the mesh. Source: Kuma.
const annotationIgnore = "kuma.io/ignore"

// readPod reads a pod, and drops what does not concern a proxy: of arguments and variables, it keeps only those of injected
// containers.
func readPod(o *apiserver.Object) (*Pod, error) {
	p, err := read[Pod](o)
	if err != nil {
		return nil, err
	}
	for _, containers := range [][]container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if record := injection.RecordIn(c.Env); c.Name == injection.ProxyName && record != nil {
				c.Record, record.Probes = record, nil
			}
			c.Env = nil
		}
	}
	isIngress := p.isIngress()
	for _, containers := range [][]container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			if !isIngress {
				containers[i].Lifecycle = nil
			}
			if c := &containers[i]; p.record() != nil || c.Name != injection.BootstrapName && c.Name != injection.CaptureName {
				c.Args = nil
			}
		}
	}
	p.boundPorts()
	var kept []podCondition
	for _, c := range p.Status.Conditions {
		if c.Type == conditionReady {
			kept = append(kept, c)
		}
	}
	p.Status.Conditions = kept
	begun := slices.ContainsFunc(p.Status.ContainerStatuses, func(s containerStatus) bool { return s.begun() })
	p.Status.ContainerStatuses = nil
	p.Status.InitContainerStatuses = slices.DeleteFunc(p.Status.InitContainerStatuses, func(s containerStatus) bool {
		return (s.Name != injection.CaptureName || !s.failed()) && (s.Name != injection.ProxyName || s.Started || begun)
	})
	if len(p.Status.InitContainerStatuses) == 0 {
		p.Status.InitContainerStatuses = nil
	}
	return p, nil
}

// boundPorts leaves out the TCP ports of the pod's containers above maxPorts, and all others: a media server may have thousands
// before the one that matters here. Those of init containers lead nowhere.
func (p *Pod) boundPorts() {
	for i := range p.Spec.InitContainers {
		p.Spec.InitContainers[i].Ports = nil
	}
	room := maxPorts
	for i := range p.Spec.Containers {
		ports := &p.Spec.Containers[i].Ports
		*ports = slices.DeleteFunc(*ports, func(port injection.ContainerPort) bool { return !isTCP(port.Protocol) })
		if len(*ports) > room {
			*ports = slices.Clone((*ports)[:room])
		}
		room -= len(*ports)
	}
}

// readService reads a Service, with the only annotations that matter here.
func readService(o *apiserver.Object) (*Service, error) {
	s, err := read[Service](o)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(s.Metadata.Annotations, func(key, _ string) bool {
		return key != annotationIgnore && key != annotationPublicAddress && key != annotationPublicPort
	})
	if len(s.Metadata.Annotations) == 0 {
		s.Metadata.Annotations = nil
	}
	return s, nil
}

// readNode reads a Node, with the labels of its location and its addresses.
func readNode(o *apiserver.Object) (*Node, error) {
	n, err := read[Node](o)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(n.Metadata.Labels, func(key, _ string) bool { return !slices.Contains(topology, key) })
	if len(n.Metadata.Labels) == 0 {
		n.Metadata.Labels = nil
	}
	return n, nil
}

func readNamespace(o *apiserver.Object) (*Namespace, error) { return read[Namespace](o) }

func read[T any](o *apiserver.Object) (*T, error) {
	out := new(T)
	if err := json.Unmarshal(o.Raw, out); err != nil {
		return nil, fmt.Errorf("%s: %w", o.ID(), err)
	}
	return out, nil
}
