// Package xds owns what the zone's proxies are told: it turns a Dataplane, the policies that select it, the services that
// it sends to and the mesh's trust bundles into Envoy's resources, and a ZoneIngress into the way to all services of the
// zone. It keeps those of the connected proxies up to date by following the store's changes, and serves them over ADS,
// delta and state of the world. It writes nothing but what it saw of the proxies, to the status store; which policies
// apply, and what their rules mean to Envoy, are zone/matching's and zone/rbac's parts.
package xds
