package kds

import (
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
)

// wire returns a resource as the audience gets it. Secrets are decrypted for peers that use them. The global uses no
// secrets of zones, so one that supports hidden secrets gets hashes instead.
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
	// The peer stores the version in the clear. A hash of the secret value could be found by trial.
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

// hasSecrets reports whether a resource has secrets, sealed or not.
func hasSecrets(r *resources.Resource) (found bool) {
	_, err := resources.EditSecrets(r, func(_, value string) (string, error) {
		found = true
		return value, nil
	})
	return found || err != nil
}
