// Package exchange decides what a global and its zones exchange, and in which form: which resources cross in which
// direction, their names on the way, how references are rewritten so that they still name the right object, what a peer
// without a feature gets instead, and which servers a resource reaches. It is pure: it reads and writes only its
// arguments. It does not depend on streams, sessions, stores (package kds) or servers.
package exchange
