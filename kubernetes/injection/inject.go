package injection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/capture"
	"github.com/causeway-mesh/causeway/capture/cni"
)

// ErrRefused reports a pod that asks for a proxy and cannot have one.
var ErrRefused = errors.New("the pod asks for a proxy and cannot have one")

// ErrNone reports a pod that asks for a proxy of a zone that gives pods none.
var ErrNone = errors.New("the pod asks for a proxy, and this zone gives pods none")

// Settings are the settings that the proxies of a zone share.
type Settings struct {
	// Image contains causeway-zone, Envoy the proxy.
	Image, Envoy string
	// XDSAddress is the zone's xDS server as pods reach it, and XDSCA the PEM text of the CA of its certificate.
	XDSAddress, XDSCA string
	// Audience is the audience of the service account token with which the proxy proves its pod.
	Audience string
	// SystemNamespace is the namespace of the zone itself, in which no pod gets a proxy.
	SystemNamespace string
	// ClusterDNS means that the cluster's resolver asks the zone for service names.
	ClusterDNS bool
	// CNI means that a plugin on each node captures pods, and no container of a pod.
	CNI bool
	// Requests and Limits are the resources of the proxy, such as cpu and memory; those of the functions Requests and Limits
	// where they are nil.
	Requests, Limits map[string]string
	// IPv6 means that the first address of pods is one of IPv6.
	IPv6 bool
	// Bootstrap renders a bootstrap for Envoy, as JSON or YAML. It is nil in a zone that gives pods no proxies.
	Bootstrap func(*Bootstrap) ([]byte, error)
	// Nonce is a text of crypto/rand.Text, different for each pod. It is part of the kubelet's paths at the proxy, so
	// that nobody else can use them.
	Nonce string
}

// Namespace is the namespace of a pod.
type Namespace struct {
	Name   string
	Labels map[string]string
}

// Operation is one step of a JSON patch (RFC 6902).
type Operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// Result is the decision about a pod that may start.
type Result struct {
	// Patch is nil for a pod that stays unchanged.
	Patch []Operation
	// Mesh is the mesh of a pod that gets a proxy.
	Mesh string
	// Warnings are for the creator of the pod.
	Warnings []string
}

// pod is the part of a pod that injection reads.
type pod struct {
	Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		HostNetwork     bool `json:"hostNetwork"`
		SecurityContext struct {
			RunAsUser *int64 `json:"runAsUser"`
		} `json:"securityContext"`
		InitContainers []podContainer    `json:"initContainers"`
		Containers     []podContainer    `json:"containers"`
		Volumes        []json.RawMessage `json:"volumes"`
	} `json:"spec"`
}

// podContainer is a container of a pod, with the text that it was read from.
type podContainer struct {
	raw             json.RawMessage
	Name            string `json:"name"`
	SecurityContext struct {
		RunAsUser    *int64 `json:"runAsUser"`
		Privileged   bool   `json:"privileged"`
		Capabilities struct {
			Add []string `json:"add"`
		} `json:"capabilities"`
	} `json:"securityContext"`
	Ports []ContainerPort `json:"ports"`
	Args  []string        `json:"args"`
	Env   []Variable      `json:"env"`
}

// ContainerPort is a port that a container declares. Source: the API of Kubernetes, v1.
type ContainerPort struct {
	Name          string `json:"name,omitempty"`
	ContainerPort uint32 `json:"containerPort"`
	Protocol      string `json:"protocol,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *podContainer) UnmarshalJSON(raw []byte) error {
	type plain podContainer
	if err := json.Unmarshal(raw, (*plain)(c)); err != nil {
		return err
	}
	c.raw = bytes.Clone(raw)
	return nil
}

// Inject decides about a pod, given as JSON. A pod that already has a proxy gets the same again, whoever added it.
// Errors wrap ErrRefused, and say what to change, or ErrNone.
func Inject(raw []byte, ns Namespace, s *Settings) (*Result, error) {
	var p pod
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("%w: the pod does not decode: %w", ErrRefused, err)
	}
	out := &Result{}
	asked, err := p.asks(ns, s, out)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if !asked {
		return out, nil
	}
	o, err := p.options(ns, out)
	if err == nil {
		err = p.conflicts(o)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	out.Mesh = o.mesh
	if s.Bootstrap == nil {
		return nil, ErrNone
	}
	p.warn(out)
	return out, p.patch(o, s, ns, out)
}

// patch builds the patch. It recreates the parts of ours that the pod already has.
func (p *pod) patch(o *options, s *Settings, ns Namespace, out *Result) error {
	probes := p.newProber(o, s.Nonce, out)
	apps, theirs, err := p.containers(probes)
	if err != nil {
		return err
	}
	rules, err := captureSettings(o, s, probes)
	if err != nil {
		return err
	}
	ours, err := containersOf(o, s, ns, rules, probes.probes)
	if err != nil {
		return err
	}
	init := slices.Concat(ours, theirs)
	volumes, err := marshalled(volumesOf(s))
	if err != nil {
		return err
	}
	for _, v := range p.Spec.Volumes {
		var named struct{ Name string }
		if err := json.Unmarshal(v, &named); err != nil {
			return fmt.Errorf("%w: a volume does not decode: %w", ErrRefused, err)
		}
		if !slices.Contains(ourVolumes, named.Name) {
			volumes = append(volumes, v)
		}
	}
	annotations := maps.Clone(p.Metadata.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationInjected] = "true"
	delete(annotations, cni.Annotation) // of a copied pod
	if s.CNI {
		text, err := json.Marshal(rules)
		if err != nil {
			return err
		}
		annotations[cni.Annotation] = string(text)
	}
	for _, part := range []struct {
		path      string
		was, will any
	}{{"/spec/initContainers", raw(p.Spec.InitContainers), init}, {"/spec/containers", raw(p.Spec.Containers), apps},
		{"/spec/volumes", p.Spec.Volumes, volumes},
		{"/metadata/annotations", p.Metadata.Annotations, annotations}} {
		was, errWas := canonical(part.was)
		will, errWill := canonical(part.will)
		if err := errors.Join(errWas, errWill); err != nil {
			return err
		}
		if !bytes.Equal(was, will) {
			out.Patch = append(out.Patch, Operation{Op: "add", Path: part.path, Value: will})
		}
	}
	return nil
}

// containersOf returns the containers that injection adds.
func containersOf(o *options, s *Settings, ns Namespace, rules *capture.Settings, probes []Probe) ([]json.RawMessage, error) {
	text, err := bootstrap(o, s, ns, probes)
	if err != nil {
		return nil, err
	}
	record, err := recordOf(o, s, rules, probes)
	if err != nil {
		return nil, err
	}
	proxy := proxyContainer(o, s, text, record, len(probes) > 0)
	if s.CNI {
		return marshalled([]any{proxy})
	}
	return marshalled([]any{captureContainer(rules, s), proxy})
}

// containers returns the pod's own containers, and init containers, with the kubelet's requests redirected to the
// proxy.
func (p *pod) containers(probes *prober) (apps, init []json.RawMessage, err error) {
	apps, init = []json.RawMessage{}, []json.RawMessage{}
	for _, of := range []struct {
		list []podContainer
		into *[]json.RawMessage
	}{{p.Spec.InitContainers, &init}, {p.Spec.Containers, &apps}} {
		for i := range of.list {
			if slices.Contains(ourContainers, of.list[i].Name) {
				continue
			}
			led, err := probes.container(&of.list[i])
			if err != nil {
				return nil, nil, err
			}
			*of.into = append(*of.into, led)
		}
	}
	return apps, init, nil
}

// raw returns the texts that containers were read from.
func raw(containers []podContainer) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(containers))
	for i := range containers {
		out = append(out, containers[i].raw)
	}
	return out
}

func marshalled(values []any) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for _, v := range values {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out = append(out, raw)
	}
	return out, nil
}

// canonical returns a value as JSON with sorted keys, so that equal values are equal text.
func canonical(v any) (json.RawMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var plain any
	if err := d.Decode(&plain); err != nil {
		return nil, err
	}
	return json.Marshal(plain)
}
