package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/printing"
)

// TestColourWhen checks when output has colours by itself, and that the flag decides.
func TestColourWhen(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mode     string
		terminal bool
		env      map[string]string
		system   string
		want     bool
	}{
		{"auto", true, nil, "linux", true},
		{"auto", false, nil, "linux", false},
		{"auto", true, map[string]string{"NO_COLOR": "1"}, "linux", false},
		{"auto", true, map[string]string{"TERM": "dumb"}, "linux", false},
		{"auto", true, nil, "windows", false},
		{"auto", true, map[string]string{"WT_SESSION": "a"}, "windows", true},
		{"always", false, map[string]string{"NO_COLOR": "1"}, "linux", true},
		{"never", true, nil, "linux", false},
	} {
		var mode colourMode
		if err := mode.Set(tc.mode); err != nil {
			t.Fatal(err)
		}
		if got := mode.on(tc.terminal, func(name string) string { return tc.env[name] }, tc.system); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
	if new(colourMode).Set("sometimes") == nil {
		t.Error("sometimes is taken")
	}
}

// TestPainter checks that only states in their columns, and verdicts that begin a line, are coloured.
func TestPainter(t *testing.T) {
	t.Parallel()
	const text = `NAME      STATUS                 SINCE   AGE
offline   online                 2s      2s
zürich    offline, two servers   1m      3m
zone-3    somewhere              1m      3m

denied by default
  no allow entry matches, and the default is to deny
allowed by kri_mtp_default___a_ rules[0]
problem: zone-1: offline since 2026-01-02T03:04:05Z
denied
offline is a word of this sentence
not finished`
	want := strings.NewReplacer(
		"offline   online ", "offline   "+green+"online"+noColour+" ",
		"offline, two servers", red+"offline, two servers"+noColour,
		"denied by", red+"denied"+noColour+" by",
		"allowed by", green+"allowed"+noColour+" by",
		"problem:", red+"problem"+noColour+":",
		"\ndenied\n", "\n"+red+"denied"+noColour+"\n",
	).Replace(text)
	var got bytes.Buffer
	p := newPainter(&got)
	p.on = true
	out := printing.NewWriter(p)
	for i := range len(text) { // in pieces, as tables are written
		if _, err := out.Write([]byte(text[i : i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("got\n%q\nwant\n%q", got.String(), want)
	}
}

// TestNoColoursOfOthers checks that a colour in text from others stays escaped.
func TestNoColoursOfOthers(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	p := newPainter(&got)
	p.on = true
	if _, err := printing.NewWriter(p).Write([]byte("denied by \x1b[32mme\n")); err != nil {
		t.Fatal(err)
	}
	if want := red + "denied" + noColour + ` by \u001b[32mme` + "\n"; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
}

// TestColourOfCommands checks that --color affects the output of a command for people, and not that for programs.
func TestColourOfCommands(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]bool{"table": true, "json": false} {
		var out, errOut bytes.Buffer
		run([]string{"explain", "-f", "testdata/colour.yaml", "--zone", "zone-1", "--to", "backend", "--inbound", "http",
			"--from", "spiffe://default.zone-1.mesh.local/workload/a", "--color", "always", "-o", format}, strings.NewReader(""),
			&out, &errOut)
		if coloured := strings.Contains(out.String(), red+"denied"+noColour+" by default"); coloured != want || out.Len() == 0 {
			t.Errorf("-o %s: %q %q", format, out.String(), errOut.String())
		}
	}
}
