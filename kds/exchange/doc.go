// Package exchange says what a global and its zones exchange, and in which form: which resources cross in which direction,
// what they are called on the way, how their references are rewritten so that they still point at the right thing, what
// a peer that lacks a feature gets in their place, and where a resource would be. It is pure: it reads and writes
// nothing but what it is given. It must not know of streams, sessions or stores (package kds), nor of servers.
package exchange
