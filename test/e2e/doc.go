// Package e2e tests whole processes: the servers and the command line as built, real Envoys in front of small
// applications, and clients that call them. It must not access a server except as a user can.
package e2e
