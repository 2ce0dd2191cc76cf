// Package purity holds tests only: that imports point down the table of ARCHITECTURE.md, and that packages whose tests
// run without the race detector are pure.
package purity
