//go:build unix && !linux

package cluster

import "net/http"

// Namespace is not available on this system.
type Namespace struct{}

// Do runs fn.
func (*Namespace) Do(fn func() error) error { return fn() }

func (*Namespace) client() *http.Client { return &http.Client{Timeout: requestTimeout} }
