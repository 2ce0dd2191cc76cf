package main

import (
	"encoding/json"
	"fmt"

	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/api"
)

// bundlesForGRPC returns the CAs of the identity's own trust domain as PEM, and those of all trust domains as a SPIFFE
// bundle map, in which each CA is valid for its own domain only (SPIFFE Trust Domain and Bundle, section 4; gRFC A87).
// The first is empty if no CA vouches for the own trust domain.
func bundlesForGRPC(signed *api.SVID) (own, byDomain []byte, err error) {
	id, err := spiffeid.FromString(signed.SpiffeID)
	if err != nil {
		return nil, nil, fmt.Errorf("the server's answer: %w", err)
	}
	bundles := map[string]json.RawMessage{}
	for name, text := range signed.Bundles {
		domain, err := spiffeid.TrustDomainFromString(name)
		if err != nil {
			return nil, nil, fmt.Errorf("the server's answer: %w", err)
		}
		bundle, err := x509bundle.Parse(domain, []byte(text))
		if err != nil {
			return nil, nil, fmt.Errorf("the server's answer: bundle of %s: %w", name, err)
		}
		if bundles[name], err = spiffebundle.FromX509Bundle(bundle).Marshal(); err != nil {
			return nil, nil, err
		}
	}
	byDomain, err = json.MarshalIndent(map[string]any{"trust_domains": bundles}, "", "  ")
	return []byte(signed.Bundles[id.TrustDomain().Name()]), byDomain, err
}
