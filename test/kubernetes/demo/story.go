package main

// A story is one step of the demo: policies are applied, calls are made, the policies are removed.
type story struct {
	title   string
	applied []applied
	calls   []call
}

// applied is a file of this folder or of test/demo, and the server where its author writes it.
type applied struct{ file, on string }

// call is a request and its expected outcome.
type call struct {
	from, to string
	// port is that of the called Service in zone-1. In zone-2 it is 0, for the only inbound.
	port int
	// path is the path of the request.
	path string
	want outcome
}

// outcome is a decision and, where the Envoy is asked, the policy that made it.
type outcome struct {
	allowed bool
	by      string
}

// Names of what the demo runs. The keys of workloads and clients are zone and name.
const (
	zone1, zone2, zone3 = "zone-1", "zone-2", "zone-3"
	onGlobal            = "global"
	httpPort            = "http-port"
	adminService        = 81

	backend1    = zone1 + "/backend"
	backend2    = zone2 + "/backend"
	frontend    = zone1 + "/frontend"
	frontend2   = zone2 + "/frontend"
	frontend3   = zone3 + "/frontend"
	stranger3   = zone3 + "/stranger"
	consumer    = zone1 + "/consumer"
	legacy      = zone1 + "/legacy-workload"
	prometheus1 = zone1 + "/prometheus"
	prometheus2 = zone2 + "/prometheus"
	gateway     = zone2 + "/api-gateway"
	malicious   = zone2 + "/malicious"
)

// The policies that decide in zone-2, as KRIs. That of the mesh's operator is in the namespace of the global.
const (
	nobody     = "default"
	byOperator = "kri_mtp_default__" + globalNamespace + "_by-mesh-operator_"
	byOwner2   = "kri_mtp_default_zone-2_backend-ns_by-backend-owner_"
	byIncident = "kri_mtp_default_zone-2_backend-ns_during-incident_"
)

func allow(by string) outcome { return outcome{allowed: true, by: by} }
func deny(by string) outcome  { return outcome{by: by} }

const (
	operatorDenies = "operator-2-explicitly-denied.yaml"
	operatorAllows = "operator-3-allow-observability.yaml"
	ownerAllows    = "owner-1-allow-any-client.yaml"
	frontendsMay   = "owner-allow-frontends.yaml"
)

// stories returns the user stories.
func stories() []story {
	return []story{
		{
			title:   "operator 1: denied by default",
			applied: []applied{{"operator-1-denied-by-default.yaml", onGlobal}},
			calls: []call{
				{from: frontend, to: backend1, want: deny("")}, {from: malicious, to: backend2, want: deny(nobody)},
			},
		},
		{
			title:   "operator 2: explicitly denied, whatever owners say",
			applied: []applied{{operatorDenies, onGlobal}, {ownerAllows, zone1}, {ownerAllows, zone2}},
			calls: []call{
				{from: legacy, to: backend1, want: deny("")}, {from: frontend, to: backend1, want: allow("")},
				{from: gateway, to: backend2, want: deny(byOperator)}, {from: malicious, to: backend2, want: allow(byOwner2)},
			},
		},
		{
			title:   "operator 3: observability may call everything",
			applied: []applied{{operatorAllows, onGlobal}},
			calls: []call{
				{from: prometheus1, to: backend1, want: allow("")}, {from: prometheus1, to: backend1, port: adminService, want: allow("")},
				{from: prometheus2, to: backend2, want: allow(byOperator)}, {from: frontend, to: backend1, want: deny("")},
			},
		},
		{
			title:   "owner 2: opt out of observability",
			applied: []applied{{operatorAllows, onGlobal}, {"owner-2-opt-out-of-observability.yaml", zone1}},
			calls: []call{
				{from: prometheus1, to: backend1, want: deny("")}, {from: prometheus2, to: backend2, want: allow(byOperator)},
			},
		},
		{
			title:   "owner 3: block a client that was allowed",
			applied: []applied{{ownerAllows, zone2}, {"owner-3-block-malicious-client.yaml", zone2}},
			calls: []call{
				{from: malicious, to: backend2, want: deny(byIncident)}, {from: gateway, to: backend2, want: allow(byOwner2)},
			},
		},
		{
			title:   "owner 5: just one of my inbounds",
			applied: []applied{{"owner-5-one-of-two-inbounds.yaml", zone1}},
			calls: []call{
				{from: frontend, to: backend1, port: adminService, want: allow("")}, {from: frontend, to: backend1, want: deny("")},
			},
		},
		{
			title:   "from other zones, by the zone ingress",
			applied: []applied{{frontendsMay, zone1}},
			calls: []call{
				{from: frontend, to: backend1, want: allow("")}, {from: frontend2, to: backend1, want: allow("")},
				{from: frontend3, to: backend1, want: allow("")}, {from: stranger3, to: backend1, want: deny("")},
			},
		},
	}
}
