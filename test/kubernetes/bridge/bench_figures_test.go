package bridge

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// figure is what a benchmark measures.
type figure struct {
	title, unit string
	// most is the highest that the median of all runs may be.
	most    float64
	samples []float64 // one for each run
}

// figures are those of all benchmarks, in the order in which they were measured first.
type figures []*figure

// goal adds a sample of a figure. It is judged when all runs have ended, by the median: -count says how many there are.
func goal(b *testing.B, title, unit string, sample, most float64) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // it would be that of the preparations
	at := slices.IndexFunc(shared.figures, func(f *figure) bool { return f.title == title })
	if at < 0 {
		at = len(shared.figures)
		shared.figures = append(shared.figures, &figure{title: title, unit: unit, most: most})
	}
	f := shared.figures[at]
	f.samples = append(f.samples, sample)
	b.Logf("%s: %s %s", title, digits(sample), unit)
}

func (f *figure) median() float64 {
	sorted := slices.Sorted(slices.Values(f.samples))
	return sorted[(len(sorted)-1)/2] // of two, the lower
}

// judge prints the table of docs/performance.md, and reports whether every median is as it may be.
func (all figures) judge(out io.Writer) bool {
	if len(all) == 0 {
		return true
	}
	fmt.Fprintln(out, "\n| figure | at most | median | runs |\n| --- | --- | --- | --- |")
	good := true
	for _, f := range all {
		var runs []string
		for _, one := range f.samples {
			runs = append(runs, digits(one))
		}
		fmt.Fprintf(out, "| %s | %s %s | %s %s | %s |\n", f.title, digits(f.most), f.unit, digits(f.median()), f.unit, strings.Join(runs, ", "))
		if f.median() > f.most {
			good = false
		}
	}
	fmt.Fprintln(out)
	for _, f := range all {
		if f.median() > f.most {
			fmt.Fprintf(out, "missed: %s: the median is %s %s, at most %s\n", f.title, digits(f.median()), f.unit, digits(f.most))
		}
	}
	return good
}

// digits writes a figure with three digits that count.
func digits(figure float64) string {
	if figure >= 100 {
		return fmt.Sprintf("%.0f", figure)
	}
	return fmt.Sprintf("%.3g", figure)
}

// TestBenchmarksAreJudgedByMedians checks that one slow run misses no goal, and that two of three do.
func TestBenchmarksAreJudgedByMedians(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		samples []float64
		good    bool
		says    string
	}{
		{[]float64{2, 500, 1}, true, "| x | 10 ms | 2 ms | 2, 500, 1 |"},
		{[]float64{2, 11, 12}, false, "missed: x: the median is 11 ms, at most 10"},
	} {
		var out strings.Builder
		all := figures{{title: "x", unit: "ms", most: 10, samples: c.samples}}
		if got := all.judge(&out); got != c.good || !strings.Contains(out.String(), c.says) {
			t.Errorf("%v: %v, want %v and %q:\n%s", c.samples, got, c.good, c.says, &out)
		}
	}
}
