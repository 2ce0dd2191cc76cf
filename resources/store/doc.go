// Package store defines the contract of a resource store, the in-memory view that every store serves reads from, and
// the changelog by revision. Subpackages such as bolt keep the bytes; Memory keeps none. A store handles resources and
// revisions. It does not interpret resources.
package store
