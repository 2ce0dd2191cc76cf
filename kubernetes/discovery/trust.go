package discovery

import (
	"slices"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
)

// trusted returns the fingerprints of the certificates by which a pod's proxy verifies the zone, as of when the pod was
// created; none for a proxy that reads a file.
func (p *Pod) trusted() []string {
	if r := p.record(); r != nil {
		return r.Authorities
	}
	for _, c := range p.Spec.InitContainers {
		if c.Name == injection.BootstrapName { // of an earlier version
			return injection.Fingerprints(argument(c.Args, "--xds-ca"))
		}
	}
	return nil
}

// estranged returns the problem of a pod whose proxy does not trust this zone, because the zone has lost its data, and
// its authority with it.
func (p *Pod) estranged(authority []byte) []Problem {
	known := p.trusted()
	if len(known) == 0 || len(authority) == 0 || p.over() || p.leaving() {
		return nil
	}
	for _, one := range injection.Fingerprints(string(authority)) {
		if slices.Contains(known, one) {
			return nil
		}
	}
	return []Problem{problem(ReasonOtherCA, "the pod is older than the CA of this zone, which has lost its data: its proxy does not connect, "+
		"keeps its last configuration, and those that are newer do not trust its certificate. Restart what the pod belongs to")}
}
