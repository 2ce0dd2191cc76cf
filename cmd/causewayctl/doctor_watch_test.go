package main

import "testing"

// TestSameFindings: an answer that takes another time is no news; everything else is.
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
