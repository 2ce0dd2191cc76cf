package main

// A story is one step of the demo: policies are applied, calls are made, the policies are removed.
type story struct {
	title   string
	applied []applied
	calls   []call
}

// applied is a file and the server that it is applied on: "global" or a zone.
type applied struct{ file, on string }

// call is a request by a client and its expected outcome.
type call struct {
	client, to string // keys of mesh.clients and mesh.workloads
	inbound    string
	want       outcome
}

// outcome is a decision and the policy that made it.
type outcome struct {
	allowed bool
	// by is a KRI, or "default".
	by string
}

// Names of what the demo runs. The keys of clients and workloads are zone and name.
const (
	zone1, zone2 = "zone-1", "zone-2"
	globalServer = "global"
	httpPort     = "http-port"
	adminPort    = "admin-port"

	backend1 = zone1 + "/backend"
	backend2 = zone2 + "/backend"

	frontend    = zone1 + "/frontend"
	prometheus1 = zone1 + "/prometheus"
	prometheus2 = zone2 + "/prometheus"
	gateway     = zone2 + "/api-gateway"
	malicious   = zone2 + "/malicious"
)

// The policies that decide, as KRIs.
const (
	nobody     = "default"
	byOperator = "kri_mtp_default___by-mesh-operator_"
	byOwner1   = "kri_mtp_default_zone-1_backend-ns_by-backend-owner_"
	byOwner2   = "kri_mtp_default_zone-2_backend-ns_by-backend-owner_"
	byIncident = "kri_mtp_default_zone-1_backend-ns_during-incident_"
)

const operatorAllows = "operator-3-allow-observability.yaml"

func allow(by string) outcome { return outcome{allowed: true, by: by} }
func deny(by string) outcome  { return outcome{by: by} }

// stories returns the user stories for permissions that need neither path nor method.
func stories() []story {
	return []story{
		{
			title:   "operator 1: denied by default",
			applied: []applied{{"operator-1-denied-by-default.yaml", globalServer}},
			calls: []call{
				{frontend, backend1, httpPort, deny(nobody)},
				{malicious, backend1, httpPort, deny(nobody)},
				{frontend, backend2, httpPort, deny(nobody)},
				{gateway, backend2, httpPort, deny(nobody)},
			},
		},
		{
			title: "operator 2: explicitly denied, whatever owners say",
			applied: []applied{
				{"operator-2-explicitly-denied.yaml", globalServer},
				{"owner-1-allow-any-client.yaml", zone1}, {"owner-1-allow-any-client.yaml", zone2},
			},
			calls: []call{
				{gateway, backend1, httpPort, deny(byOperator)},
				{gateway, backend2, httpPort, deny(byOperator)},
				{frontend, backend1, httpPort, allow(byOwner1)},
				{frontend, backend2, httpPort, allow(byOwner2)},
			},
		},
		{
			title:   "operator 3: observability may call everything",
			applied: []applied{{operatorAllows, globalServer}},
			calls: []call{
				{prometheus1, backend1, httpPort, allow(byOperator)},
				{prometheus1, backend2, httpPort, allow(byOperator)},
				{prometheus2, backend1, adminPort, allow(byOperator)},
				{frontend, backend1, httpPort, deny(nobody)},
			},
		},
		{
			title:   "owner 1: any client that I choose",
			applied: []applied{{"owner-1-allow-any-client.yaml", zone1}},
			calls: []call{
				{frontend, backend1, httpPort, allow(byOwner1)},
				{gateway, backend1, httpPort, allow(byOwner1)},
				{gateway, backend2, httpPort, deny(nobody)},
			},
		},
		{
			title:   "owner 2: opt out of observability",
			applied: []applied{{operatorAllows, globalServer}, {"owner-2-opt-out-of-observability.yaml", zone1}},
			calls: []call{
				{prometheus1, backend1, httpPort, deny(byOwner1)},
				{prometheus2, backend1, httpPort, deny(byOwner1)},
				{prometheus2, backend2, httpPort, allow(byOperator)},
			},
		},
		{
			title:   "owner 3: block a client that was allowed",
			applied: []applied{{"owner-1-allow-any-client.yaml", zone1}, {"owner-3-block-malicious-client.yaml", zone1}},
			calls: []call{
				{malicious, backend1, httpPort, deny(byIncident)},
				{frontend, backend1, httpPort, allow(byOwner1)},
			},
		},
		{
			title:   "owner 5: just one of my inbounds",
			applied: []applied{{"owner-5-one-of-two-inbounds.yaml", zone1}},
			calls: []call{
				{frontend, backend1, adminPort, allow(byOwner1)},
				{frontend, backend1, httpPort, deny(nobody)},
			},
		},
	}
}
