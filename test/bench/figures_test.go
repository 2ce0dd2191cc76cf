package main

import (
	"strings"
	"testing"
)

// TestVerdicts checks that the median of the rounds counts. A time may exceed the goal by as much as the machine was
// slower in that round, and no more; other figures may not exceed it.
func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		unit    string
		goal    float64
		samples []float64
		slower  []float64
		want    string
	}{
		"within": {"ms", 5, []float64{4, 9, 5}, []float64{1, 1, 1}, "ok"},
		"over":   {"ms", 5, []float64{6, 6, 4}, []float64{1, 1, 1}, "**missed**"},
		"a slower machine": {"ms", 5, []float64{6, 7, 6}, []float64{1.5, 1.5, 1.5},
			"ok: 4.00 at the pace of the goals"},
		"slower, and over still":  {"s", 5, []float64{8, 8, 8}, []float64{1.5, 1.5, 1.5}, "**missed**"},
		"slower in another round": {"ms", 5, []float64{8, 4, 8}, []float64{1, 2, 1}, "**missed**"},
		"faster in one round": {"ms", 5, []float64{6, 6, 3}, []float64{1.5, 1.25, 0.5},
			"ok: 4.00 at the pace of the goals"},
		"a faster one is not asked": {"ms", 5, []float64{4, 4, 4}, []float64{0.5, 0.5, 0.5}, "ok"},
		"memory has no pace":        {"MiB", 5, []float64{6, 6, 6}, []float64{2, 2, 2}, "**missed**"},
		"nothing asked for":         {"ms", 0, []float64{6}, []float64{1}, ""},
		"no pace is known":          {"ms", 5, []float64{6}, nil, "**missed**"},
	} {
		t.Run(name, func(t *testing.T) {
			tab := &table{title: "Title"}
			for i, sample := range c.samples {
				tab.add("figure", c.unit, c.goal, sample)
				if i < len(c.slower) {
					tab.pace(c.slower[i])
				}
			}
			if got := tab.figures[0].verdict(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			lines := missed([]*table{tab})
			if (len(lines) == 1) != strings.Contains(c.want, "missed") {
				t.Errorf("named as missed: %q", lines)
			}
		})
	}
}

// TestGrowth checks that the last of the samples that follow each other counts, against the first.
func TestGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		samples []float64
		want    string
	}{
		"level":           {[]float64{10, 30, 11}, "ok"},
		"as the goal":     {[]float64{10, 11, 12}, "ok"},
		"grown":           {[]float64{10, 11, 12.5}, "**missed**"},
		"less in the end": {[]float64{10, 30, 5}, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			tab := &table{title: "Title"}
			for i, sample := range c.samples {
				tab.addMoment(strings.Repeat("i", i), "heap", "MiB", 2, sample)
			}
			if got := tab.figures[0].verdict(); got != c.want || !strings.Contains(tab.String(), "| "+c.want+" |") {
				t.Errorf("%q, want %q, in\n%s", got, c.want, tab)
			}
		})
	}
}
