package main

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
)

// TestNothingWasStoredIsSaidOnce checks that an answer that says itself that nothing was stored is not repeated.
func TestNothingWasStoredIsSaidOnce(t *testing.T) {
	t.Parallel()
	for _, detail := range []string{"the store cannot write (no space left on device); nothing was stored: free space", "it is closed"} {
		err := becameOf(&api.Error{Status: 503, Title: "Service Unavailable", Detail: detail, Outcome: api.OutcomeNothing})
		if said := err.Error(); strings.Count(said, "nothing was stored") != 1 || !strings.Contains(said, "Service Unavailable: ") {
			t.Errorf("%q: %q", detail, said)
		}
	}
}
