package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
)

// TestUnexamined checks that a server's refusal is not reported as a missing answer.
func TestUnexamined(t *testing.T) {
	refusal := fmt.Errorf("zones: %w", api.NewError(403, "Forbidden", "you may not list zones"))
	if got := (&cli{address: "http://a"}).unexamined(refusal); strings.Contains(got, "did not answer") || !strings.Contains(got, "may not") {
		t.Errorf("a refusal: %s", got)
	}
	gone := &url.Error{Op: "Get", URL: "http://a", Err: errors.New("connection reset")}
	if got := (&cli{address: "http://a"}).unexamined(gone); !strings.Contains(got, "did not answer") {
		t.Errorf("no answer: %s", got)
	}
}

// TestSameFindings checks that a different response time is no change, and anything else is.
func TestSameFindings(t *testing.T) {
	t.Parallel()
	const before = "ok  api  Causeway v1 answers in 12ms\nok  disk  a small durable write takes 1.2ms\n"
	for now, same := range map[string]bool{
		"ok  api  Causeway v1 answers in 7ms\nok  disk  a small durable write takes 900µs\n":       true,
		"ok  api  Causeway v2 answers in 12ms\nok  disk  a small durable write takes 1.2ms\n":      false,
		"warning  api  Causeway v1 answers in 12ms\nok  disk  a small durable write takes 1.2ms\n": false,
		"ok  api  Causeway v1 answers in 12ms\n":                                                   false,
		"":                                                                                         false,
	} {
		if sameFindings(before, now) != same {
			t.Errorf("%q: want %t", now, same)
		}
	}
}
