// Package rbac turns the rules of one inbound into Envoy's RBAC filters, and implements in plain Go what those filters
// must decide. It is pure: it reads no store and no clock, and it never fails. Where a rule cannot be enforced as
// written, a deny becomes wider and an allow narrower, and Warnings reports it.
//
// A rule passes through these files: entry.go lowers entries to string tests, steps.go puts them in order, matcher.go
// writes them as a list, compile.go as maps of identities. evaluate.go is the reference that both must agree with.
//
// No filter is open by accident: every filter has a matcher that ends in Deny, no rules means deny, and a client with
// more than one URI SAN is denied before any rule is evaluated.
package rbac
