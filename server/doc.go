// Package server holds what the processes of global and zone share: listening, the serving certificate, HTTP service
// that drains, diagnostics, the ready file, logging and the version. It does not depend on resources or on what is
// served.
package server
