// Package holdings keeps what a zone has issued to its proxies and cannot reproduce after a restart: their SVIDs with
// the private keys, and the marks that distinguish filter chains. A restarted zone that issues the same sends nothing.
//
// It is one file, sealed, in the data directory; it can be deleted at any time, and only saves proxies a change. What it cannot give
// back is given anew.
package holdings
