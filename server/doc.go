// Package server owns what the global and the zone servers have in common as processes: listening, the certificate made
// at first start, HTTP service that drains, diagnostics, the ready file, logging and the version. It knows nothing of
// resources or of what is served.
package server
