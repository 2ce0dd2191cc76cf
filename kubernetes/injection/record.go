package injection

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"

	"github.com/causeway-mesh/causeway/capture"
)

// recordVariable is the variable of the proxy's container that holds its Record. Nothing reads it in the pod.
const recordVariable = reserved + "INJECTED"

// Record is what injection decided about a pod, in a variable of the proxy's container. Like all of a container, and unlike
// labels and annotations, it cannot change later.
type Record struct {
	Mesh string `json:"mesh"`
	// Authorities are the fingerprints of the certificates by which the proxy verifies the zone.
	Authorities []string `json:"authorities,omitempty"`
	// InboundPort and OutboundPort are the proxy's, to which connections are redirected. PastInbound are the ports, and ranges of
	// ports, that bypass it.
	InboundPort  uint16   `json:"inboundPort"`
	OutboundPort uint16   `json:"outboundPort"`
	PastInbound  []string `json:"pastInbound,omitempty"`
	// Plugin means that the network plugin of the node captures, and that the startup probe of the proxy proves it.
	Plugin bool `json:"plugin,omitempty"`
	// Probes are what the kubelet asked the application before injection. Only injection reads them.
	Probes []Probe `json:"probes,omitempty"`
}

// MaxPast limits the ports, and ranges of ports, that bypass a proxy: those of the annotation, of its readiness and of its
// probes. A Record with more is none, whoever wrote it.
const MaxPast = maxList + 2

// Variable is a variable of a container, with its value as text. Source: the API of Kubernetes, v1.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// RecordIn returns the record among the variables of a proxy's container; nil if there is none.
func RecordIn(env []Variable) *Record {
	for _, one := range env {
		if one.Name != recordVariable {
			continue
		}
		out := &Record{}
		if json.Unmarshal([]byte(one.Value), out) != nil || out.Mesh == "" || len(out.PastInbound) > MaxPast {
			return nil
		}
		return out
	}
	return nil
}

// recordOf returns the record of a pod as the value of a variable. Kubernetes replaces $(NAME) in what a process sees of
// it, but nothing in the pod itself.
func recordOf(o *options, s *Settings, rules *capture.Settings, probes []Probe) (string, error) {
	raw, err := json.Marshal(&Record{Mesh: o.mesh, Authorities: Fingerprints(s.XDSCA), InboundPort: rules.InboundPort,
		OutboundPort: rules.OutboundPort, PastInbound: each(rules.ExcludeInboundPorts), Plugin: s.CNI, Probes: probes})
	if err != nil {
		return "", err
	}
	return string(raw), fits(len(recordVariable) + len("=") + len(raw))
}

// Fingerprints returns the SHA-256 of each certificate in a PEM text, in hexadecimal.
func Fingerprints(text string) (out []string) {
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		sum := sha256.Sum256(block.Bytes)
		out = append(out, hex.EncodeToString(sum[:]))
	}
	return out
}
