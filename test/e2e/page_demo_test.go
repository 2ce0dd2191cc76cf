package e2e

import (
	"context"
	"html"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestDemo runs the demo as `make demo ONCE=1` does. Its status reports whether all rows were as expected.
func TestDemo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, programs.demo(), "-once", "-bin", programs.bin(), "-envoy", programs.envoy())
	cmd.Env = append(cmd.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the demo ended with %v:\n%s", err, out)
	}
	for _, want := range []string{
		"kri_mtp_default___by-mesh-operator_", "CHANGED ON THE GLOBAL", "producer-timeout-", "not there",
		"the consumer's policy of zone-2 beats it",
		"MeshTimeout", "MeshRetry", "MeshRateLimit", "MeshAccessLog", "MeshTrace",
		"Why 403?", "kri_mtp_default_zone-1_backend-ns_without-zone-2_: not safe to enforce: ",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in what it printed:\n%s", want, out)
		}
	}
	picture, err := os.ReadFile("../../docs/images/demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range linesOfRecording(string(picture)) {
		if !strings.Contains(unchanging(string(out)), unchanging(line)) {
			t.Errorf("the recording in the README has a line that the demo does not print: make recording\n%s", line)
		}
	}
}

// linesOfRecording returns the lines of a recording. One that is cut ends where it was cut.
func linesOfRecording(svg string) []string {
	var lines []string
	for _, m := range regexp.MustCompile(`(?m)^<text [^>]*>(.*)</text>$`).FindAllStringSubmatch(svg, -1)[1:] { // the first is the command
		text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], ""))
		lines = append(lines, strings.TrimSuffix(text, "…"))
	}
	return lines
}

// unchanging returns a text without what differs from one run to the next: times, and the widths of their columns.
func unchanging(text string) string {
	text = regexp.MustCompile(`[0-9][0-9.]*`).ReplaceAllString(text, "#")
	text = strings.ReplaceAll(text, " (# s)", "") // of a step that takes long
	return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
}
