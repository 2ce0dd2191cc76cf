package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgress checks that a quick command prints nothing. A slow one prints what it waits for, again when that
// changes, and periodically when it does not.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := startProgress(&out, "quick")
		<-time.After(patience / 2)
		p.stop()
		if out.Len() > 0 {
			t.Errorf("a quick command said %q", out.String())
		}

		p = startProgress(&out, "one")
		<-time.After(3*patience + patience/2)
		p.say("%s of %d", "two", 2)
		<-time.After(2 * patience)
		<-time.After(reminder)
		p.stop()
		if got, want := out.String(), "one (1s)\ntwo of 2 (4s)\ntwo of 2 (14s)\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
