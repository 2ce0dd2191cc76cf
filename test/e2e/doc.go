// Package e2e tests whole processes: the servers and the command line as they are built, real Envoys in front of small
// applications, clients that call in. It must not reach into a server otherwise than a user can.
package e2e
