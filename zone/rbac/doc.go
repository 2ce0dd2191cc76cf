// Package rbac turns the rules of one inbound into Envoy's RBAC filters, and says in plain Go what those filters must
// decide. It is pure: it reads no store and no clock, and it never fails. Where a rule cannot be enforced as written, a
// deny becomes wider and an allow narrower, and Warnings says so.
//
// The way of a rule: entry.go lowers entries to string tests, steps.go puts them in order, matcher.go writes them as a list,
// compile.go as maps of identities. evaluate.go is the reference that both must agree with.
//
// Filters are built so that nothing is open by accident: every filter has a matcher that ends in Deny, no rules means
// deny, and a client that shows more than one URI SAN is denied before anything else is looked at.
package rbac
