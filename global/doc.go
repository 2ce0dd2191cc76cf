// Package global owns the global server: its wiring, and what only it knows of zones, which is their registration and
// their status. It holds no rule of the protocol (kds) and none of the API (resources/api).
package global
