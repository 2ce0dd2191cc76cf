package main

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/zone/callers"
)

// TestAccessReportSaysWhetherNoneWasSeen checks that an empty report claims that nothing was seen only if the record is
// complete.
func TestAccessReportSaysWhetherNoneWasSeen(t *testing.T) {
	const none, unknown = "none was seen", "whether any was tried is unknown"
	for _, tt := range []struct {
		seen      callers.Seen
		says, not string
	}{
		{callers.Seen{}, none, unknown},
		{callers.Seen{Unknown: "each zone keeps what its own proxies report"}, unknown, none},
		{callers.Seen{Dropped: 3}, unknown, none},
	} {
		var out strings.Builder
		if err := (&accessReport{Seen: tt.seen}).print(&out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), tt.says) || strings.Contains(out.String(), tt.not) {
			t.Errorf("%+v: got %s", tt.seen, out.String())
		}
	}
}
