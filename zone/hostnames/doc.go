// Package hostnames computes the names by which callers reach services, and the address that stands for each service.
// It is pure: the same resources give the same names, whatever order they came in. It must not know how proxies answer
// for the names.
package hostnames
