// Package checkpoint keeps what a zone has issued to its proxies and cannot reproduce after a restart: their SVIDs with
// the private keys, and the marks that distinguish filter chains. A restarted zone that issues the same sends nothing.
//
// It is one sealed file in the data directory. The file can be deleted at any time, and only saves proxies a change.
// What it cannot return is issued again.
package checkpoint
