package discovery

import (
	"bytes"
	"encoding/pem"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
)

// trusted returns the PEM text of the certificates by which a pod's proxy verifies the zone, as of when the pod was
// created; empty for a proxy that reads a file.
func (p *Pod) trusted() string {
	for _, c := range p.Spec.InitContainers {
		if c.Name == injection.BootstrapName {
			return argument(c.Args, "--xds-ca")
		}
	}
	return ""
}

// estranged returns the problem of a pod whose proxy does not trust this zone, because the zone has lost its data, and
// its authority with it.
func (p *Pod) estranged(authority []byte) []Problem {
	text := p.trusted()
	if text == "" || len(authority) == 0 || text == string(authority) || p.over() || p.leaving() {
		return nil
	}
	known := blocksOf([]byte(text))
	if len(known) == 0 {
		return nil
	}
	for _, one := range blocksOf(authority) {
		for _, other := range known {
			if bytes.Equal(one, other) {
				return nil
			}
		}
	}
	return []Problem{problem(ReasonOtherCA, "the pod is older than the CA of this zone, which has lost its data: its proxy does not connect, "+
		"keeps its last configuration, and those that are newer do not trust its certificate. Restart what the pod belongs to")}
}

func blocksOf(text []byte) (out [][]byte) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		out = append(out, block.Bytes)
	}
	return out
}
