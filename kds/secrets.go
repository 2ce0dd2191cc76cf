package kds

import (
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
)

// wire is a resource as the audience gets it. Secrets in it are opened for peers that use them. The global uses none of what zones write,
// so one that knows the form gets hashes instead.
func (e *Encoder) wire(r *resources.Resource, a *exchange.Audience) (*discovery.Resource, error) {
	sealed := r.Spec.Sealed()
	sent := r
	var err error
	switch {
	case !sealed:
	case a.Direction == exchange.ZoneToGlobal && a.Features.Has(exchange.FeatureHiddenSecrets):
		sent, err = hideSecrets(r)
	case e.open != nil:
		sent, err = e.open(r)
	}
	if err != nil {
		return nil, err
	}
	out, err := e.mapping.Outbound(sent, a)
	if err != nil {
		return nil, err
	}
	wire, err := Encode(out)
	if err != nil || !sealed || sent == r {
		return wire, err
	}
	// The version is kept in the clear by the peer. A hash of the value would let it be found by trying.
	if out, err = hideSecrets(out.WithSpec(r.Spec)); err != nil {
		return nil, err
	}
	hidden, err := Encode(out)
	if err != nil {
		return nil, err
	}
	wire.Version = hidden.GetVersion()
	return wire, nil
}

func hideSecrets(r *resources.Resource) (*resources.Resource, error) {
	spec, err := resources.EditSecrets(r, func(_, value string) (string, error) {
		if _, is := resources.SealedBytes(value); is {
			return resources.HiddenText(value), nil
		}
		return value, nil
	})
	if err != nil {
		return nil, err
	}
	return r.WithSpec(spec), nil
}
