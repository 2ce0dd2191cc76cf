// Package purity holds a test only: of the packages whose tests run without the race detector.
package purity
