package main

import (
	"bytes"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestSignsOfDurations: a proxy that receives a duration receives its sign, in each change of the longest run.
func TestSignsOfDurations(t *testing.T) {
	plan := fullPlan()
	seen := map[string]int{}
	for n := range plan.wide + plan.narrow + 1 {
		text, sign := moment(n)
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := proto.Marshal(durationpb.New(d))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(raw, sign) {
			t.Fatalf("duration %d, %s, is encoded as %x, and looked for as %x", n, text, raw, sign)
		}
		if before, is := seen[text]; is {
			t.Fatalf("durations %d and %d are both %s", before, n, text)
		}
		seen[text] = n
	}
}
