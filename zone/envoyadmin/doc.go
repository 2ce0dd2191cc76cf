// Package envoyadmin reads the admin interfaces of the zone's Envoys: their configuration, metrics, endpoints and
// certificates. Each Envoy shows these paths on a listener of its own (zone/xds, admin.go), which admits only the holder
// of the zone's key, and only to read. The zone asks no address that does not prove the identity of the Dataplane.
package envoyadmin
