// Package nameserver answers DNS queries for the names that HostnameGenerators give to services. It serves the resolver
// of a Kubernetes cluster, which forwards a domain to it. It knows no other names, asks nobody, and keeps nothing about
// its callers.
package nameserver
