package kds

import (
	"errors"
	"fmt"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// checkItem checks the parts of a resource that refusals repeat, whatever else is wrong with it.
func checkItem(wire *discovery.Resource) error {
	if err := checkFullName(wire.GetName()); err != nil {
		return fmt.Errorf("%w: %w", errUndecodable, err)
	}
	if strings.ContainsFunc(wire.GetVersion(), isControl) {
		return fmt.Errorf("%w: its version is %q: want printable characters", errUndecodable, truncate(wire.GetVersion()))
	}
	return nil
}

// refuseUnnamed refuses a resource whose name is too malformed to identify it later.
func (p *changeset) refuseUnnamed(v *receiver, d *resources.Descriptor, wire *discovery.Resource, err error) {
	name := truncate(wire.GetName())
	p.names = append(p.names, name)
	p.refused = append(p.refused, tracker.Refusal{Direction: v.arrival.Direction, Type: d.Type, Name: name,
		Reason: err.Error()})
}

// refuse records why a resource is refused. It records the refused version only if the resource has a copy here: a peer
// that resumes is told of no others, so it offers them again. Those over a limit are offered again too.
func (p *changeset) refuse(v *receiver, d *resources.Descriptor, wire *discovery.Resource, err error) {
	name := wire.GetName()
	p.refused = append(p.refused, tracker.Refusal{Direction: v.arrival.Direction, Type: d.Type, Name: name,
		Version: wire.GetVersion(), Reason: err.Error()})
	if v.copyNamed(p.snapshot, d.Type, name) == nil {
		p.gone = append(p.gone, name)
		return
	}
	p.here = append(p.here, name)
	if !errors.Is(err, errOverLimit) && len(wire.GetVersion()) <= tracker.MaxVersion {
		p.copies[name] = copyVersion{version: wire.GetVersion(), refused: true}
	}
}
