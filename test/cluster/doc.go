// Package cluster runs a real mesh on this machine: control planes, Envoys and applications as processes and sockets,
// and clients that call with identities, good and forged. The demo, the end-to-end tests and the fault tests share it.
// It waits for conditions, never for time, and leaves no process behind. It must not look inside the servers: it knows
// them by their command lines, their ready files, their HTTP APIs and their data directories.
package cluster
