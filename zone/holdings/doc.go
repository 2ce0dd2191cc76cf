// Package holdings keeps what a zone has given to its proxies and could not make again after a restart: their SVIDs with the private
// keys, and the marks by which filter chains are told apart. A zone that starts again and gives the same sends nothing.
//
// It is one file, sealed, in the data directory; it can be deleted at any time, and only saves proxies a change. What it cannot give
// back is given anew.
package holdings
