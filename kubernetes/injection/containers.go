package injection

import (
	"slices"
	"strconv"
	"time"

	"github.com/causeway-mesh/causeway/capture"
)

// Names of the containers that injection adds to a pod.
const (
	// BootstrapName is the container that writes the bootstrap of the chart's zone ingress, and did so in pods of earlier
	// versions.
	BootstrapName = "causeway-bootstrap"
	// CaptureName is the container that installs the capture rules. In pods of earlier versions it also verified them.
	CaptureName = "causeway-capture"
	// ProxyName is the Envoy container.
	ProxyName = "causeway-proxy"
)

// ShownPort is the port at which a pod's proxy exposes part of its admin interface, to the zone only.
const ShownPort = 15022

// ProofPort is a port of a pod on which nobody listens: only the rules of a plugin lead the kubelet from it to the proxy.
const ProofPort = 15023

const (
	// proxyUser is the user of the proxy. Traffic of this user is not captured, and an image's own user is not visible
	// here. So it is a number that no image uses by accident, as some use Kuma's 5678, and that user namespaces have.
	proxyUser = 56785
	// Ports of the proxy in a pod.
	inboundPort, outboundPort, readyPort, defaultProbePort, adminPort = 15006, 15001, 15021, 15020, 9901

	// earlierVolume had the bootstrap, in pods of earlier versions.
	earlierVolume = "causeway-proxy"
	tokenVolume   = "causeway-token"
	tokenPath     = "/var/run/secrets/causeway.io" //nolint:gosec // a path, not a credential

	// tokenLife is the lifetime of a token. Kubernetes renews it in the volume at 80 %.
	tokenLife = 24 * time.Hour
	// probesFlag named the probes and hooks that the proxy answers, in pods of earlier versions.
	probesFlag = "--probes"
	// startTries is how many seconds a proxy may take to get its configuration before the kubelet restarts it.
	startTries = 120
)

var (
	ourContainers = []string{BootstrapName, CaptureName, ProxyName}
	ourVolumes    = []string{earlierVolume, tokenVolume}
)

// The parts of a pod that injection creates. Source: the API of Kubernetes, v1.
type (
	container struct {
		Name            string          `json:"name"`
		Image           string          `json:"image"`
		Command         []string        `json:"command"`
		Args            []string        `json:"args"`
		Env             []envVar        `json:"env,omitempty"`
		RestartPolicy   string          `json:"restartPolicy,omitempty"`
		StartupProbe    *probe          `json:"startupProbe,omitempty"`
		ReadinessProbe  *probe          `json:"readinessProbe,omitempty"`
		Resources       resources       `json:"resources"`
		SecurityContext securityContext `json:"securityContext"`
		VolumeMounts    []mount         `json:"volumeMounts,omitempty"`
	}
	envVar struct {
		Name      string     `json:"name"`
		Value     string     `json:"value,omitempty"`
		ValueFrom *envSource `json:"valueFrom,omitempty"`
	}
	envSource struct {
		FieldRef fieldRef `json:"fieldRef"`
	}
	fieldRef struct {
		FieldPath string `json:"fieldPath"`
	}
	probe struct {
		HTTPGet          httpGet `json:"httpGet"`
		PeriodSeconds    int     `json:"periodSeconds"`
		FailureThreshold int     `json:"failureThreshold"`
	}
	httpGet struct {
		Path string `json:"path"`
		Port int    `json:"port"`
	}
	resources struct {
		Requests map[string]string `json:"requests"`
		Limits   map[string]string `json:"limits"`
	}
	securityContext struct {
		AllowPrivilegeEscalation bool           `json:"allowPrivilegeEscalation"`
		Capabilities             capabilities   `json:"capabilities"`
		ReadOnlyRootFilesystem   bool           `json:"readOnlyRootFilesystem"`
		RunAsUser                int            `json:"runAsUser"`
		RunAsGroup               int            `json:"runAsGroup"`
		RunAsNonRoot             bool           `json:"runAsNonRoot"`
		SeccompProfile           seccompProfile `json:"seccompProfile"`
	}
	capabilities struct {
		Add  []string `json:"add,omitempty"`
		Drop []string `json:"drop"`
	}
	seccompProfile struct {
		Type string `json:"type"`
	}
	mount struct {
		Name      string `json:"name"`
		MountPath string `json:"mountPath"`
		ReadOnly  bool   `json:"readOnly,omitempty"`
	}
)

// restricted returns a security context that meets the pod security standard of that name.
func restricted() securityContext {
	return securityContext{ReadOnlyRootFilesystem: true, RunAsUser: proxyUser, RunAsGroup: proxyUser, RunAsNonRoot: true,
		Capabilities: capabilities{Drop: []string{"ALL"}}, SeccompProfile: seccompProfile{"RuntimeDefault"}}
}

func small() resources {
	return resources{Requests: map[string]string{"cpu": "10m", "memory": "32Mi"}, Limits: map[string]string{"memory": "128Mi"}}
}

// captureContainer returns the container that installs the capture rules. It needs one capability, which it would not
// get as a user other than root.
func captureContainer(rules *capture.Settings, s *Settings) *container {
	args := []string{"capture", "install", "--proxy-user", strconv.Itoa(int(rules.ProxyUser)),
		"--inbound-port", strconv.Itoa(int(rules.InboundPort)), "--outbound-port", strconv.Itoa(int(rules.OutboundPort)),
		"--exclude-inbound-ports", texts(rules.ExcludeInboundPorts)}
	for _, list := range []struct{ flag, of string }{{"--exclude-outbound-ports", texts(rules.ExcludeOutboundPorts)},
		{"--exclude-inbound-addresses", texts(rules.ExcludeInboundAddresses)},
		{"--exclude-outbound-addresses", texts(rules.ExcludeOutboundAddresses)}} {
		if list.of != "" {
			args = append(args, list.flag, list.of)
		}
	}
	out := &container{Name: CaptureName, Image: s.Image, Command: []string{"/usr/bin/causeway-zone"}, Args: args,
		Resources: small(), SecurityContext: restricted()}
	out.SecurityContext.RunAsUser, out.SecurityContext.RunAsGroup, out.SecurityContext.RunAsNonRoot = 0, 0, false
	out.SecurityContext.Capabilities.Add = []string{"NET_ADMIN"}
	return out
}

// proxyContainer returns the Envoy container: a native sidecar, which starts before the pod's containers and ends after
// them. It has no hot restart, because a second Envoy in the pod, such as the application, could not bind the same
// socket. Where a plugin captures, the kubelet asks for the start at ProofPort: until an answer comes back, which only the
// rules make possible, no other container of the pod starts.
func proxyContainer(o *options, s *Settings, bootstrap, record string, probed bool) *container {
	args := []string{"--config-yaml", bootstrap, "--drain-time-s", strconv.Itoa(int(o.drain / time.Second)),
		"--log-level", o.logLevel, "--disable-hot-restart"}
	if o.concurrency != "" && o.concurrency != "0" {
		args = append(args, "--concurrency", o.concurrency)
	} else if o.concurrency == "" {
		args = append(args, "--concurrency", "2")
	}
	env := append(slices.Clone(o.env), envVar{Name: nameVariable, ValueFrom: &envSource{fieldRef{"metadata.name"}}})
	if probed {
		env = append(env, envVar{Name: addressVariable, ValueFrom: &envSource{fieldRef{"status.podIP"}}})
	}
	ready := httpGet{Path: "/ready", Port: readyPort}
	started := ready
	if s.CNI {
		started.Port = ProofPort
	}
	return &container{Name: ProxyName, Image: s.Envoy, Command: []string{"envoy"}, Args: args,
		Env:             append(env, envVar{Name: recordVariable, Value: record}),
		RestartPolicy:   "Always",
		StartupProbe:    &probe{HTTPGet: started, PeriodSeconds: 1, FailureThreshold: startTries},
		ReadinessProbe:  &probe{HTTPGet: ready, PeriodSeconds: 5, FailureThreshold: 3},
		Resources:       s.resources(),
		SecurityContext: restricted(),
		VolumeMounts:    []mount{{Name: tokenVolume, MountPath: tokenPath, ReadOnly: true}},
	}
}

// volumesOf returns the volume of the proxy's token, which only the proxy has and which the kubelet renews.
func volumesOf(s *Settings) []any {
	type m = map[string]any
	return []any{
		m{"name": tokenVolume, "projected": m{"sources": []any{m{"serviceAccountToken": m{
			"audience": s.Audience, "expirationSeconds": int(tokenLife / time.Second), "path": "token"}}}}},
	}
}
