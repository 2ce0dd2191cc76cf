package injection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Probe is a probe, or a lifecycle hook, that the kubelet sends to the proxy instead of the application. Exactly one of
// HTTPGet, TCPSocket and GRPC holds the original request.
type Probe struct {
	// Path is the kubelet's path at the proxy, for GET. It contains a part that only readers of the pod know.
	Path string `json:"path"`
	// Port is the number of the application's port.
	Port uint32 `json:"port"`
	// Timeout is in seconds; zero means none, as for hooks.
	Timeout   int        `json:"timeout,omitempty"`
	HTTPGet   *HTTPGet   `json:"httpGet,omitempty"`
	TCPSocket *struct{}  `json:"tcpSocket,omitempty"`
	GRPC      *GRPCProbe `json:"grpc,omitempty"`
}

// HTTPGet is a request of the kubelet. Source: the API of Kubernetes, v1.
type HTTPGet struct {
	Path    string       `json:"path,omitempty"`
	Scheme  string       `json:"scheme,omitempty"`
	Headers []HTTPHeader `json:"httpHeaders,omitempty"`
}

// HTTPHeader is a header of such a request: its "name" and its "value".
type HTTPHeader map[string]string

// GRPCProbe asks for the health of a service by gRPC's health protocol.
type GRPCProbe struct {
	Service string `json:"service,omitempty"`
}

// MaxProbes limits the probes and hooks of a pod that the proxy answers.
const MaxProbes = 64

// nonceForm is the form of the secret part of paths: crypto/rand.Text.
var nonceForm = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// IsProbePath reports whether a text has the form of a Probe's path, which only readers of the pod may know.
func IsProbePath(text string) bool { return nonceForm.MatchString(nonceOf(text)) }

// nonceOf returns the part of a path at the position of the nonce.
func nonceOf(path string) string {
	rest, isPath := strings.CutPrefix(path, "/")
	nonce, _, _ := strings.Cut(rest, "/")
	if !isPath {
		return ""
	}
	return nonce
}

// handler is the kubelet's action for a probe or a hook. Source: the API of Kubernetes, v1.
type handler struct {
	HTTPGet *struct {
		HTTPGet

		Host string          `json:"host"`
		Port json.RawMessage `json:"port"`
	} `json:"httpGet"`
	TCPSocket *struct {
		Host string          `json:"host"`
		Port json.RawMessage `json:"port"`
	} `json:"tcpSocket"`
	GRPC *struct {
		Service string          `json:"service"`
		Port    json.RawMessage `json:"port"`
	} `json:"grpc"`
	TimeoutSeconds int `json:"timeoutSeconds"`
}

// port returns the port of the pod itself that a handler uses; nil if it uses none.
func (h *handler) port() json.RawMessage {
	switch {
	case h.HTTPGet != nil && h.HTTPGet.Host == "":
		return h.HTTPGet.Port
	case h.TCPSocket != nil && h.TCPSocket.Host == "":
		return h.TCPSocket.Port
	case h.GRPC != nil:
		return h.GRPC.Port
	}
	return nil
}

// probe returns what the proxy must answer.
func (h *handler) probe(path string, port uint32, timeout int) Probe {
	out := Probe{Path: path, Port: port, Timeout: timeout}
	switch {
	case h.HTTPGet != nil:
		out.HTTPGet = &h.HTTPGet.HTTPGet
	case h.TCPSocket != nil:
		out.TCPSocket = &struct{}{}
	default:
		out.GRPC = &GRPCProbe{Service: h.GRPC.Service}
	}
	return out
}

// prober redirects the probes and hooks of a pod to the proxy.
type prober struct {
	o   *options
	out *Result
	// nonce is the secret part of paths. known holds our probes already in the pod: the original requests.
	nonce string
	known map[string]Probe
	// probes are those that the proxy answers.
	probes []Probe
}

// newProber returns a prober for a pod, which may already have a proxy.
func (p *pod) newProber(o *options, nonce string, to *Result) *prober {
	out := &prober{o: o, out: to, nonce: nonce, known: map[string]Probe{}}
	for i := range p.Spec.InitContainers {
		for _, one := range p.Spec.InitContainers[i].recorded() {
			if IsProbePath(one.Path) {
				out.nonce, out.known[one.Path] = nonceOf(one.Path), one
			}
		}
	}
	return out
}

// recorded returns the probes that a container of ours says the kubelet asked before injection.
func (c *podContainer) recorded() (out []Probe) {
	at := slices.Index(c.Args, probesFlag)
	switch {
	case c.Name == ProxyName:
		if record := RecordIn(c.Env); record != nil {
			return record.Probes
		}
	case c.Name == BootstrapName && at >= 0 && at+1 < len(c.Args): // of an earlier version
		if json.Unmarshal([]byte(strings.ReplaceAll(c.Args[at+1], "$$", "$")), &out) != nil {
			return nil
		}
	}
	return out
}

// The kubelet's checks of a container, and its start and stop hooks.
var (
	probeKinds = []string{"startupProbe", "readinessProbe", "livenessProbe"}
	hookKinds  = []string{"postStart", "preStop"}
)

// container redirects the kubelet's requests to a container to the proxy, and returns the changed container.
func (p *prober) container(c *podContainer) (json.RawMessage, error) {
	var fields, hooks map[string]json.RawMessage
	if err := json.Unmarshal(c.raw, &fields); err != nil {
		return nil, err
	}
	changed := false
	if raw, ok := fields["lifecycle"]; ok {
		if err := json.Unmarshal(raw, &hooks); err != nil {
			return nil, fmt.Errorf("%w: the lifecycle of container %q does not decode: %w", ErrRefused, c.Name, err)
		}
	}
	for _, in := range []struct {
		fields map[string]json.RawMessage
		kinds  []string
	}{{fields, probeKinds}, {hooks, hookKinds}} {
		for _, kind := range in.kinds {
			if raw, ok := in.fields[kind]; ok {
				led, err := p.lead(c, kind, raw)
				if err != nil {
					return nil, err
				}
				if led != nil {
					in.fields[kind], changed = led, true
				}
			}
		}
	}
	if !changed {
		return c.raw, nil
	}
	if hooks != nil {
		raw, err := json.Marshal(hooks)
		if err != nil {
			return nil, err
		}
		fields["lifecycle"] = raw
	}
	return json.Marshal(fields)
}

// lead returns a probe or a hook that asks the proxy; nil if it stays unchanged.
func (p *prober) lead(c *podContainer, kind string, raw json.RawMessage) (json.RawMessage, error) {
	var h handler
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &h); err != nil {
		return nil, fmt.Errorf("%w: the %s of container %q does not decode: %w", ErrRefused, kind, c.Name, err)
	}
	if err := json.Unmarshal(raw, &all); err != nil || all == nil {
		return nil, err
	}
	port := c.portOf(h.port())
	isHook := slices.Contains(hookKinds, kind)
	switch {
	case port == 0, isHook && h.HTTPGet == nil, port != p.o.probePort && p.o.goesPast(port):
		return nil, nil
	case p.o.probePort == 0:
		p.out.warnf("the %s of container %q comes from the node without an identity, and the proxy refuses it: use exec or %s, or leave out %s",
			kind, c.Name, annotationNotInboundPorts, annotationProbePort)
		return nil, nil
	}
	path := "/" + p.nonce + "/" + c.Name + "/" + kind
	timeout := 0
	if !isHook {
		timeout = max(h.TimeoutSeconds, 1)
	}
	one := h.probe(path, port, timeout)
	if port == p.o.probePort { // it already leads to the proxy
		before, ok := p.known[path]
		if !ok || h.HTTPGet == nil || h.HTTPGet.Path != path {
			return nil, fmt.Errorf("%w: the %s of container %q asks at port %d, which is the proxy's: %s", ErrRefused, kind,
				c.Name, port, p.o.otherPort(port))
		}
		one = before
		one.Timeout = timeout
	}
	if does := p.o.owns(one.Port); does != "" {
		return nil, fmt.Errorf("%w: the %s of container %q asks at port %d, on which the proxy %s: choose another", ErrRefused, kind, c.Name,
			one.Port, does)
	}
	if len(p.probes) == MaxProbes {
		return nil, fmt.Errorf("%w: it has more than %d probes and hooks: leave some out", ErrRefused, MaxProbes)
	}
	p.probes = append(p.probes, one)
	delete(all, "tcpSocket")
	delete(all, "grpc")
	get, err := json.Marshal(map[string]any{"path": path, "port": p.o.probePort, "scheme": "HTTP"})
	if err != nil {
		return nil, err
	}
	all["httpGet"] = get
	return json.Marshal(all)
}

// portOf returns the number of a container's port, given by number or name; zero if there is none.
func (c *podContainer) portOf(raw json.RawMessage) uint32 {
	var number uint32
	var name string
	raw = bytes.TrimSpace(raw)
	if len(raw) > 0 && json.Unmarshal(raw, &number) == nil && number <= 65535 {
		return number
	}
	if json.Unmarshal(raw, &name) != nil || name == "" {
		return 0
	}
	for _, port := range c.Ports {
		if port.Name == name {
			return port.ContainerPort
		}
	}
	parsed, _ := strconv.ParseUint(name, 10, 16) // the kubelet accepts that too
	return uint32(parsed)
}
