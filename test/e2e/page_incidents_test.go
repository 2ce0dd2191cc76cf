package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/pages"
)

const incidentsPage = "docs/operations/incidents.md"

// incidents plays docs/operations/incidents.md: it creates a situation, runs the command of its section and compares
// the output with the page. Then it follows the page's advice, and the command no longer reports the situation.
type incidents struct {
	*truth
	played   []string // the sections
	contexts string   // the file with the context of each server
}

// newIncidents names the servers of a mesh as the page does. The global is the current context.
func newIncidents(m *mesh) *incidents {
	m.t.Helper()
	in := &incidents{truth: &truth{m}, contexts: filepath.Join(m.t.TempDir(), "contexts.yaml")}
	in.knows("global", m.global.API.URL())
	for name, zone := range m.zones {
		in.knows(name, zone.API.URL())
	}
	return in
}

func (in *incidents) knows(name, address string) {
	in.t.Helper()
	for _, args := range [][]string{{"set-context", name, "--address", address}, {"use-context", "global"}} {
		_, err := in.Output(in.t.Context(), nil, "causewayctl", append([]string{"config", "--config", in.contexts}, args...)...)
		in.must(err)
	}
}

// play creates the situation of a section, waits until the section's command prints what the page shows, undoes it as
// the page advises, and waits until the command no longer prints that.
func (in *incidents) play(section string, begin, remedy func()) {
	in.t.Helper()
	in.played = append(in.played, section)
	root, err := cluster.Root()
	in.must(err)
	commands, err := pages.Read(root, incidentsPage, "## "+section)
	in.must(err)
	shown := commands[0]
	if !strings.Contains(strings.Join(shown.Output, "\n"), "what to do:") {
		in.t.Errorf("%s: the page shows no output that says what to do", section)
	}
	begun := time.Now()
	begin()
	in.eventually(section+": "+shown.Text+" to print what the page shows", func(ctx context.Context) error {
		return in.prints(ctx, &shown)
	})
	seen := time.Now()
	remedy()
	first := slices.IndexFunc(shown.Output, func(line string) bool { return line != "..." })
	in.eventually(section+": "+shown.Text+" to print it no longer", func(ctx context.Context) error {
		out, err := in.runs(ctx, shown.Text)
		if err == nil && slices.ContainsFunc(out, patternOf(shown.Output[first]).MatchString) {
			err = errNotYet
		}
		return err
	})
	in.t.Logf("%s: shown after %s, gone %s after the remedy", section, seen.Sub(begun).Round(time.Millisecond),
		time.Since(seen).Round(time.Millisecond))
}

// runs runs a command of the page and returns what it prints. A status of 1 is an answer.
func (in *incidents) runs(ctx context.Context, command string) ([]string, error) {
	args := strings.Fields(strings.ReplaceAll(command, "http://127.0.0.1:5680", "http://"+in.global.Address("diagnostics")))
	out, err := in.Output(ctx, nil, args[0], append(args[1:], "--config", in.contexts)...)
	if exitStatus(err) == 1 {
		err = nil
	}
	return strings.Split(string(out), "\n"), err
}

// patternOf matches a line as the page shows it. Three dots stand for variable text.
func patternOf(line string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, ".+") + "$")
}

// prints compares the output of a command with the page: it has each line of the page, in this order. A line of three
// dots stands for any lines.
func (in *incidents) prints(ctx context.Context, shown *pages.Command) error {
	out, err := in.runs(ctx, shown.Text)
	if err != nil {
		return err
	}
	rest := out
	for _, line := range shown.Output {
		if line == "..." {
			continue
		}
		at := slices.IndexFunc(rest, patternOf(line).MatchString)
		if at < 0 {
			return fmt.Errorf("no line %q in\n%s", line, strings.Join(out, "\n"))
		}
		rest = rest[at+1:]
	}
	return nil
}

// plays are the tests that play the sections of the page.
var plays = map[string][]string{
	"TestIncidentsOfZones": {"A zone is offline", "A resource is refused", "A poisoned resource", "A removal is held",
		"A rollout hangs", "A proxy is behind"},
	"TestIncidentsOfTheGlobal": {"The disk is full", "The global was restored", "Two servers are one zone"},
	"TestIncidentsOfTime":      {"A certificate is near its end", "A clock is wrong"},
	"TestIncidentWithoutEtcd":  {"Etcd is lost"},
}

// all checks that a test has played its sections.
func (in *incidents) all() {
	in.t.Helper()
	if want := plays[in.t.Name()]; !slices.Equal(in.played, want) {
		in.t.Errorf("it played %q, want %q", in.played, want)
	}
}

// TestIncidentsAreAllPlayed checks that one of the tests plays each section of the page, and that the section has the
// cause, the remedy and how to undo it.
func TestIncidentsAreAllPlayed(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, incidentsPage))
	if err != nil {
		t.Fatal(err)
	}
	var sections, played []string
	for _, part := range strings.Split(string(raw), "\n## ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		sections = append(sections, name)
		for _, want := range []string{"```console\n$ causewayctl ", "**Cause.** ", "**Remedy.** ", "**Undo.** "} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q", name, want)
			}
		}
	}
	for _, names := range plays {
		played = append(played, names...)
	}
	slices.Sort(sections)
	slices.Sort(played)
	if !slices.Equal(sections, played) {
		t.Errorf("the page has %q, the tests play %q", sections, played)
	}
}
