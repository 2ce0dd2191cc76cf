package main

import "github.com/causeway-mesh/causeway/resources"

// otherTypes are other types than policies that configure proxies. A test compares their fields with those of the
// types.
var otherTypes = []policyType{
	{resources.TypeHostnameGenerator,
		"Gives services names, and each service an address, in `status.addresses` and `status.vips` (`status.vip` of a MeshExternalService). A proxy answers for them if its bootstrap has " +
			"`--dns-address` ([Names and egress](../names.md)). A change moves the UDP listener `causeway_dns`, and no other. `TestNamesOfServices` (`zone/envoy_names_test.go`) shows it with a resolver, " +
			"and `TestWhoHasAName` (`zone/hostnames/names_test.go`) who gets a name that two could have.",
		[]policyField{
			{"selector.meshService.matchLabels", "the MeshServices in `inline_dns_table`, and a listener for each port", "they have names"},
			{"selector.meshExternalService.matchLabels", "the MeshExternalServices there", "they have names"},
			{"selector.meshMultiZoneService.matchLabels", "the MeshMultiZoneServices there", "they have names"},
			{"template", "`virtual_domains[].name`", "the name resolves, and a request to it arrives"},
		},
		""},
}
