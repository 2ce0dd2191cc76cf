package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// figure is one measured value with its goal.
type figure struct {
	title, unit string
	// goal is the highest accepted median of the rounds; zero for no goal.
	goal    float64
	samples []float64 // one per round
	// paced are the samples scaled to the machine of the goals, for a figure that depends on the machine's speed.
	paced []float64
	// growing means that the samples follow each other, and that the goal is the most by which the last may exceed the first.
	growing bool
}

// table holds figures in the order in which they were first added.
type table struct {
	title   string
	figures []*figure
	// moments are when the samples were taken, in a table of figures that may grow.
	moments []string
	// note is a paragraph below the table.
	note string
}

// add appends a sample. It adds the figure if it is new.
func (t *table) add(title, unit string, goal, sample float64) {
	f := t.figure(title, unit, goal)
	f.samples = append(f.samples, sample)
}

// addMoment appends a sample of a figure that may grow.
func (t *table) addMoment(moment, title, unit string, goal, sample float64) {
	if !slices.Contains(t.moments, moment) {
		t.moments = append(t.moments, moment)
	}
	f := t.figure(title, unit, goal)
	f.growing = true
	f.samples = append(f.samples, sample)
}

func (t *table) figure(title, unit string, goal float64) *figure {
	for _, f := range t.figures {
		if f.title == title {
			return f
		}
	}
	f := &figure{title: title, unit: unit, goal: goal}
	t.figures = append(t.figures, f)
	return f
}

// pace ends a round: it divides the times that were added since the last one by how much slower the machine was than the
// machine of the goals.
func (t *table) pace(by float64) {
	for _, f := range t.figures {
		for (f.unit == "ms" || f.unit == "s") && len(f.paced) < len(f.samples) {
			f.paced = append(f.paced, f.samples[len(f.paced)]/max(by, 1))
		}
	}
}

// value is what the goal is for: the growth of a figure that may grow, and the median of the samples of any other.
func (f *figure) value() float64 {
	if f.growing {
		return max(0, f.samples[len(f.samples)-1]-f.samples[0])
	}
	return medianOf(f.samples)
}

func medianOf(samples []float64) float64 {
	s := slices.Sorted(slices.Values(samples))
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}

// over reports whether the value is over the goal on this machine. misses reports whether it would be on the machine
// of the goals.
func (f *figure) over() bool { return f.goal > 0 && f.value() > f.goal }

func (f *figure) misses() bool {
	return f.over() && (len(f.paced) == 0 || medianOf(f.paced) > f.goal)
}

// verdict returns the verdict on the goal, or an empty string without a goal.
func (f *figure) verdict() string {
	switch {
	case f.goal == 0:
		return ""
	case f.misses():
		return "**missed**"
	case f.over():
		return fmt.Sprintf("ok: %s at the pace of the goals", number(medianOf(f.paced)))
	}
	return "ok"
}

// number prints v with three significant digits.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

// writeTo prints the table as Markdown.
func (t *table) writeTo(w io.Writer) {
	fmt.Fprintf(w, "### %s\n\n", t.title)
	if t.moments != nil {
		t.writeMoments(w)
	} else {
		t.writeRounds(w)
	}
	fmt.Fprintln(w)
	if t.note != "" {
		fmt.Fprintf(w, "%s\n\n", t.note)
	}
}

func (t *table) writeMoments(w io.Writer) {
	fmt.Fprintf(w, "| figure | %s | growth | at most | |\n| ---%s | --- | --- | --- |\n", strings.Join(t.moments, " | "),
		strings.Repeat(" | ---", len(t.moments)))
	for _, f := range t.figures {
		cells := make([]string, len(f.samples))
		for i, sample := range f.samples {
			cells[i] = number(sample)
		}
		fmt.Fprintf(w, "| %s, %s | %s | %s | %s | %s |\n", f.title, f.unit, strings.Join(cells, " | "), number(f.value()), number(f.goal),
			f.verdict())
	}
}

func (t *table) writeRounds(w io.Writer) {
	fmt.Fprint(w, "| figure | at most | median | min | max | |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, f := range t.figures {
		goal := ""
		if f.goal > 0 {
			goal = number(f.goal) + " " + f.unit
		}
		fmt.Fprintf(w, "| %s | %s | %s %s | %s | %s | %s |\n", f.title, goal, number(f.value()), f.unit,
			number(slices.Min(f.samples)), number(slices.Max(f.samples)), f.verdict())
	}
}

// String returns the table as Markdown.
func (t *table) String() string {
	var out strings.Builder
	t.writeTo(&out)
	return out.String()
}

// missed returns the figures over their goals, as lines.
func missed(tables []*table) []string {
	var lines []string
	for _, t := range tables {
		for _, f := range t.figures {
			if f.misses() {
				lines = append(lines, fmt.Sprintf("%s: %s: %s %s, at most %s", strings.ToLower(t.title), f.title,
					number(f.value()), f.unit, number(f.goal)))
			}
		}
	}
	return lines
}
