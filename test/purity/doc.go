// Package purity holds tests only, of the sources: that imports point down the table of ARCHITECTURE.md, that packages whose
// tests run without the race detector are pure, that what documents name exists, and that nothing is an input of a kept
// result that the go command does not see.
package purity
