// Package global owns the global server: its wiring, and what only it knows about zones: their registration and status.
// The rules of the protocol are in kds, those of the API in api.
package global
