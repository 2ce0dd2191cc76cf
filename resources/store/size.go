package store

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// MaxResourceBytes bounds spec, status and labels of one resource in every store, so that every server can store a
// resource that another server accepts. It is below etcd's default request limit (1.5 MiB). Only the store itself
// limits a Batch that is Synced.
const MaxResourceBytes = 1 << 20

// TooLargeError refuses a resource that the store can never hold, and its batch. Retrying does not help.
type TooLargeError struct {
	Key resources.Key
	// Bytes is the size of the resource. Limit is the maximum, or 0 if the store does not report it.
	Bytes, Limit int
}

// Error names the resource, and the limit if it is known.
func (e *TooLargeError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("%s has %d bytes, more than the store takes: split it, or raise the store's limit", e.Key, e.Bytes)
	}
	return fmt.Sprintf("%s has %d bytes, more than %d: split it", e.Key, e.Bytes, e.Limit)
}

// CheckSize returns a *TooLargeError for a resource over MaxResourceBytes. old is the resource that it replaces, or
// nil. Stores from before the limit may have larger resources, which may be written again but must not grow.
func CheckSize(r, old *resources.Resource) error {
	size := sizeOf(r)
	if size <= MaxResourceBytes || old != nil && size <= sizeOf(old) {
		return nil
	}
	return &TooLargeError{Key: r.Key, Bytes: size, Limit: MaxResourceBytes}
}

// sizeOf returns the size that MaxResourceBytes limits.
func sizeOf(r *resources.Resource) int {
	size := r.Spec.Size() + len(r.Status)
	for label, value := range r.Labels {
		size += len(label) + len(value)
	}
	return size
}
