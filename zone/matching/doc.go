// Package matching decides which policies apply to a proxy and in which order. It is pure: resources in, rules out. It
// reads no store, no clock and no configuration, never fails (what is wrong with a policy is part of the answer), and
// knows nothing of Envoy; turning rules into filters is package rbac's work.
//
// The way through it: NewProxy and NewPolicy read resources once; Selects says whether a policy reaches a proxy at all;
// Index keeps many policies so that a proxy looks at few of them; Inbound gives the ordered permissions of one inbound.
// For every other policy type: Destinations resolves what policies refer to, To gives the confs for what a proxy sends
// and RouteTable its routes, From and InboundConfs those for what it receives, ProxyConf those of the whole proxy.
package matching
