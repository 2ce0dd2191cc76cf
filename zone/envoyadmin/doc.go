// Package envoyadmin reads the admin interfaces of the zone's Envoys: their configuration, metrics, endpoints and
// certificates. Each Envoy exposes these paths on a separate listener (zone/xds, admin.go), read-only and only to the
// holder of the zone's key. The zone sends no question to an address that does not prove the identity of the Dataplane.
package envoyadmin
