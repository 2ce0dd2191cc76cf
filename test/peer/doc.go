// Package peer is the other side of both protocols, written from their descriptions alone: a zone of another vendor
// that speaks KDS, and a proxy that speaks ADS. They keep what they receive and answer as such peers do. They share no
// code with the servers except the generated envelope, so that a mistake in a server is not repeated here.
package peer
