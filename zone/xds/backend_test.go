package xds

import (
	"strings"
	"testing"
)

// TestSubsetsHaveNamesOfTheirOwn: no tags are written so that their cluster is that of others: one owner's subset would
// get the requests for another's.
func TestSubsetsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, tags := range []map[string]string{
		{"version": "v2"}, {"a": "b", "c": "d"}, {"a": "b,c=d"}, {"a": "b=c"}, {"a=b": "c"}, {"a": "b%2Cc%3Dd"}, {"a": "b%"},
		{"a": "b%25"}, {"a": "", "b": ""}, {"a": ",b="}, {"a": strings.Repeat("x", 300)}, {"a": strings.Repeat("x", 301)},
	} {
		text := subsetText(tags)
		if other, is := seen[text]; is {
			t.Errorf("%d and %d are both called %q", other, i, text)
		}
		seen[text] = i
	}
	if got := subsetText(map[string]string{"version": "v2", "team": "a"}); got != "team=a,version=v2" {
		t.Errorf("plain tags are called %q", got)
	}
}
