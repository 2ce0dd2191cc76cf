// Package storetest provides the conformance suite that every store.Store passes, and its fixtures. It does not depend
// on any implementation.
package storetest

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources/store"
)

// Open creates an empty store for one test, with the given window and clock, and closes it when the test ends.
type Open func(t testing.TB, view store.ViewConfig) store.Store

// Run checks the whole contract of store.Store.
func Run(t *testing.T, open Open) {
	for name, test := range map[string]func(*testing.T, Open){
		"agrees with a plain map":               testModel,
		"conditions":                            testConditions,
		"a batch is one unit":                   testBatch,
		"equal content writes nothing":          testEqualContent,
		"a version is of one content":           testVersions,
		"check sees the state of its batch":     testCheck,
		"times":                                 testTimes,
		"resources are the store's own":         testOwnership,
		"what cannot be kept is refused":        testInvalid,
		"lists are ordered":                     testOrder,
		"snapshots do not change":               testSnapshot,
		"window by commits":                     testWindowCommits,
		"window by changes":                     testWindowChanges,
		"a commit wakes all watchers":           testWatchers,
		"a context ends the wait":               testContext,
		"closed":                                testClosed,
		"concurrent writers lose nothing":       testConcurrentWriters,
		"concurrent readers see whole batches":  testConcurrentReaders,
		"following the changes gives the state": testFollow,
	} {
		t.Run(name, func(t *testing.T) { test(t, open) })
	}
}
