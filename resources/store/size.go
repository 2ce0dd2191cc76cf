package store

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// MaxResourceBytes bounds spec, status and labels of one resource, in every store: what one server takes, all that it is
// synchronised to can take too. It is below what etcd takes in one request by default (1.5 MiB). A Batch that is Synced is
// bounded by the store alone.
const MaxResourceBytes = 1 << 20

// TooLargeError refuses a resource that the store can never hold, and the batch with it. To try again is of no use.
type TooLargeError struct {
	Key resources.Key
	// Bytes is the resource's size, Limit what the store takes; 0 when the store does not say.
	Bytes, Limit int
}

// Error names the resource, and what is allowed where that is known.
func (e *TooLargeError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("%s has %d bytes, more than the store takes: split it, or raise the store's limit", e.Key, e.Bytes)
	}
	return fmt.Sprintf("%s has %d bytes, more than %d: split it", e.Key, e.Bytes, e.Limit)
}

// CheckSize returns a *TooLargeError for a resource over MaxResourceBytes. What it replaces, old, may be nil: a store from before
// there was the limit has larger ones, which can be written again, but not grow.
func CheckSize(r, old *resources.Resource) error {
	size := sizeOf(r)
	if size <= MaxResourceBytes || old != nil && size <= sizeOf(old) {
		return nil
	}
	return &TooLargeError{Key: r.Key, Bytes: size, Limit: MaxResourceBytes}
}

// sizeOf is what counts for MaxResourceBytes.
func sizeOf(r *resources.Resource) int {
	size := len(r.Spec.JSON()) + len(r.Status)
	for label, value := range r.Labels {
		size += len(label) + len(value)
	}
	return size
}
