// Package xds builds and serves the configuration of the zone's proxies. It turns a Dataplane, the policies that select
// it, the services that it sends to and the mesh's trust bundles into Envoy's resources, and a ZoneIngress into the
// routes to all services of the zone. It follows the store's changes to keep the connected proxies up to date, and
// serves them over ADS, delta and state of the world. It writes only what it observes of the proxies, to the status
// store. zone/matching decides which policies apply, and zone/rbac what their rules mean to Envoy.
package xds
