// Package store owns the contract of a resource store, the in-memory view that every store serves reads from, and the
// changelog by revision. Where the bytes are kept is a subpackage's (bolt) or nobody's (Memory). A store knows resources
// and revisions; what a resource means is not its business.
package store
