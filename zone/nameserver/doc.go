// Package nameserver answers DNS queries for the names that HostnameGenerators give to services, for the resolver of a
// Kubernetes cluster, which forwards a domain to it. It knows no other names, asks nobody, and keeps nothing of those that
// ask.
package nameserver
