package main

import (
	"fmt"
	"html"
	"io"
	"regexp"
	"time"
	"unicode/utf8"
)

const (
	// columns and rows are the size of the terminal. Longer lines end with an ellipsis.
	columns, rows = 176, 36
	charWidth     = 8.4
	lineHeight    = 18
	margin        = 16
	// typed is when the command stands there; hold is how long the end stays.
	typed = time.Second
	hold  = 8 * time.Second
)

// words that have a colour, in this order of the expression's groups.
var coloured = regexp.MustCompile(`\b(allowed|allow|ok)\b|\b(denied|deny|NOT AS EXPECTED)\b|(kri_[a-z0-9_-]+)`)

// draw writes the picture. Each line appears at its time, the text scrolls when the screen is full, and it begins again
// after the end. Who prefers no motion sees the end.
func draw(w io.Writer, command string, lines []line) {
	all := append([]line{{typed / 2, "$ " + command}}, lines...)
	for i := range all[1:] {
		all[i+1].at += typed
	}
	total := all[len(all)-1].at + hold
	width, height := columns*charWidth+2*margin, rows*lineHeight+2*margin
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" aria-label="A recording of %s">`+"\n", width, height, html.EscapeString(command))
	fmt.Fprintf(w, "<style>\ntext{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;fill:#d0d7de}\n"+
		".y{fill:#56d364}.n{fill:#ff7b72}.k{fill:#79c0ff}\ng,text{animation:%.2fs step-end infinite}\n", total.Seconds())
	percent := func(at time.Duration) float64 { return 100 * at.Seconds() / total.Seconds() }
	fmt.Fprintf(w, "@keyframes s{0%%{transform:none}")
	for i, l := range all {
		if hidden := i + 1 - rows; hidden > 0 {
			fmt.Fprintf(w, "%.2f%%{transform:translateY(-%dpx)}", percent(l.at), hidden*lineHeight)
		}
	}
	last := max(0, len(all)-rows) * lineHeight
	fmt.Fprintf(w, "}\ng{animation-name:s;transform:translateY(-%dpx)}\n", last)
	for i, l := range all {
		fmt.Fprintf(w, "@keyframes l%d{0%%{opacity:0}%.2f%%{opacity:1}}\n", i, percent(l.at))
	}
	fmt.Fprintf(w, "@media (prefers-reduced-motion:reduce){g,text{animation:none}}\n</style>\n")
	fmt.Fprintf(w, `<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>`+"\n"+`<svg x="%d" y="%d" width="%.0f" height="%d"><g>`+"\n", margin, margin, columns*charWidth, rows*lineHeight)
	for i, l := range all {
		text := cut(l.text)
		if text == "" {
			continue
		}
		fmt.Fprintf(w, `<text y="%d" textLength="%.1f" style="animation-name:l%d" xml:space="preserve">%s</text>`+"\n",
			i*lineHeight+14, float64(utf8.RuneCountInString(text))*charWidth, i, paint(text))
	}
	fmt.Fprintln(w, "</g></svg>\n</svg>")
}

// cut returns a line as it fits on the screen.
func cut(text string) string {
	if runes := []rune(text); len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return text
}

// paint returns a line as SVG, with coloured words.
func paint(text string) string {
	out, from := "", 0
	for _, m := range coloured.FindAllStringSubmatchIndex(text, -1) {
		class := "y"
		if m[4] >= 0 {
			class = "n"
		} else if m[6] >= 0 {
			class = "k"
		}
		out += html.EscapeString(text[from:m[0]]) + `<tspan class="` + class + `">` + html.EscapeString(text[m[0]:m[1]]) + "</tspan>"
		from = m[1]
	}
	return out + html.EscapeString(text[from:])
}
