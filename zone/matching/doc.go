// Package matching decides which policies apply to a proxy and in which order. It is pure: it turns resources into
// rules. It reads no store, no clock and no configuration, never fails (problems of a policy are part of the result),
// and does not depend on Envoy. Package rbac turns rules into filters.
//
// NewProxy and NewPolicy read each resource once. Selects reports whether a policy reaches a proxy at all. Index holds
// many policies, so that each proxy is checked against few of them. Inbound returns the ordered permissions of one
// inbound. For all other policy types, Destinations resolves the references of policies, To returns the confs for the
// traffic that a proxy sends and RouteTable its routes, From and InboundConfs return the confs for the traffic that it
// receives, and ProxyConf those of the whole proxy.
package matching
