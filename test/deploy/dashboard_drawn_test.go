package deploy

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"
)

// Sizes of the picture, in pixels: a column and a row of the dashboard's grid, and a panel's margin.
const (
	column = 50
	row    = 24
	margin = 6
)

var colours = []string{"#73bf69", "#f2cc0c", "#5794f2", "#ff780a", "#b877d9", "#f2495c", "#8ab8ff", "#96d98d"}

// drawn returns the panels as a picture.
func drawn(all []*panel) string {
	bottom := 0
	for _, p := range all {
		bottom = max(bottom, (p.GridPos.Y+p.GridPos.H)*row)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12"><rect width="100%%" height="100%%" fill="#111217"/>`+"\n",
		24*column, bottom)
	for _, p := range all {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)"><rect width="%d" height="%d" rx="3" fill="#181b1f" stroke="#2c3235"/><text x="10" y="18" fill="#ccccdc" font-weight="bold">%s</text>`,
			p.GridPos.X*column+margin/2, p.GridPos.Y*row+margin/2, p.width(), p.height(), html.EscapeString(p.Title))
		switch {
		case len(p.lines) == 0:
			fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#6e7280" text-anchor="middle">nothing</text>`, p.width()/2, p.height()/2)
		case p.Type == "stat":
			last := p.lines[0].points[len(p.lines[0].points)-1].value
			fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#73bf69" font-size="40" text-anchor="middle">%s</text>`, p.width()/2, p.height()/2+20, p.unit(last))
		default:
			p.drawLines(&b)
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (p *panel) width() int  { return p.GridPos.W*column - margin }
func (p *panel) height() int { return p.GridPos.H*row - margin }

// drawLines draws lines between axes, with a legend below.
func (p *panel) drawLines(b *strings.Builder) {
	first, last, highest := math.Inf(1), math.Inf(-1), 0.0
	for _, l := range p.lines {
		first, last = min(first, l.points[0].at), max(last, l.points[len(l.points)-1].at)
		for _, at := range l.points {
			highest = max(highest, at.value)
		}
	}
	if highest == 0 {
		highest = 1
	}
	left, top, wide, high := 54.0, 30.0, float64(p.width()-70), float64(p.height()-70)
	for _, share := range []float64{0, 0.5, 1} {
		y := top + high*(1-share)
		fmt.Fprintf(b, `<path d="M%.0f %.0fh%.0f" stroke="#2c3235"/><text x="%.0f" y="%.0f" fill="#8e8e9b" font-size="10" text-anchor="end">%s</text>`,
			left, y, wide, left-4, y+3, p.unit(highest*share))
	}
	slices.SortFunc(p.lines, func(a, c line) int { return strings.Compare(a.legend, c.legend) })
	x := 10
	for i, l := range p.lines {
		colour := colours[i%len(colours)]
		fmt.Fprintf(b, `<path fill="none" stroke="%s" stroke-width="1.5" d="`, colour)
		for n, at := range l.points {
			fmt.Fprintf(b, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[n == 0], left+wide*(at.at-first)/max(1, last-first),
				top+high*(1-at.value/highest))
		}
		b.WriteString(`"/>`)
		if size := 7*len(l.legend) + 14; x+size < p.width() {
			fmt.Fprintf(b, `<text x="%d" y="%d" fill="%s" font-size="10">%s</text>`, x, p.height()-12, colour, html.EscapeString(l.legend))
			x += size
		}
	}
}

// unit returns a value in the panel's unit.
func (p *panel) unit(value float64) string {
	switch unit := p.FieldConfig.Defaults.Unit; {
	case unit != "s":
		return fmt.Sprintf("%.3g", value)
	case value > 172_800:
		return fmt.Sprintf("%.0f days", value/86_400)
	default:
		return time.Duration(value * float64(time.Second)).Round(100 * time.Microsecond).String()
	}
}
