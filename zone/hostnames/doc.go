// Package hostnames computes the names by which callers reach services, and the address of each service. It is pure:
// the same resources give the same names in any order. It must not know how proxies answer for the names.
package hostnames
