package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var walkOut = flag.String("walk-out", "", "folder for every answer of TestWalk, to be read")

// question is one line of testdata/walk/questions.txt.
type question struct {
	of   string // both, global or zone
	text string
}

// walk asks a mesh everything about its state.
type walk struct {
	*mesh
	zone  *cluster.Server
	away  []*cluster.Proxy // the proxies of a workload, an ingress and a gateway
	words *strings.Replacer
}

// lines returns the lines of a file in testdata/walk, without comments, cut at tabs.
func lines(t *testing.T, file string) (all [][]string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "walk", file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, strings.Split(line, "\t"))
		}
	}
	return all
}

func questions(t *testing.T) (all []question) {
	t.Helper()
	for _, fields := range lines(t, "questions.txt") {
		all = append(all, question{fields[0], fields[1]})
	}
	return all
}

// ask returns a server's answer to a question, with the status in its first line.
func (w *walk) ask(ctx context.Context, s *cluster.Server, q string) string {
	kind, rest, _ := strings.Cut(w.words.Replace(q), " ")
	switch kind {
	case "causewayctl":
		args := strings.Fields(strings.ReplaceAll(rest, "{diagnostics}", "http://"+s.Address("diagnostics")))
		said, err := w.Said(ctx, s, args...)
		return fmt.Sprintf("exit %d\n%s", exitStatus(err), said)
	case "page":
		return w.request(ctx, http.MethodGet, s.Address("diagnostics"), rest, "")
	default:
		path, body, _ := strings.Cut(rest, " ")
		return w.request(ctx, kind, s.Address("api"), path, body)
	}
}

func (w *walk) request(ctx context.Context, method, address, path, body string) string {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d\n%s\n%s", answer.StatusCode, said, strings.Join(answer.Header.Values("Warning"), "\n"))
}

// asked returns the answers of a server to the questions that it can be asked and that are chosen.
func (w *walk) asked(s *cluster.Server, kind string, chosen func(question string) bool) map[string]string {
	w.t.Helper()
	var (
		mu      sync.Mutex
		all     = map[string]string{}
		clients errgroup.Group
	)
	clients.SetLimit(4)
	for _, q := range questions(w.t) {
		if (q.of == "both" || q.of == kind) && chosen(q.text) {
			clients.Go(func() error {
				said := w.ask(w.t.Context(), s, q.text)
				mu.Lock()
				defer mu.Unlock()
				all[q.text] = said
				return nil
			})
		}
	}
	w.must(clients.Wait())
	return all
}

// write writes all answers of a server into a file, for readers.
func (w *walk) write(state, kind string, s *cluster.Server) {
	all := w.asked(s, kind, func(string) bool { return true })
	var written bytes.Buffer
	for _, q := range questions(w.t) {
		if said, ok := all[q.text]; ok {
			fmt.Fprintf(&written, "=== %s\n%s\n", q.text, said)
		}
	}
	file := filepath.Join(*walkOut, strings.ReplaceAll(state, " ", "-")+"."+s.Name())
	w.must(os.WriteFile(file, written.Bytes(), 0o600))
}

// saying is what answers must say, or must not, in a state: testdata/walk/says.txt.
type saying struct {
	about *regexp.Regexp // of questions
	not   bool
	words *regexp.Regexp
}

// sayings returns what the answers of a kind of server must say in a state.
func sayings(t *testing.T, state, kind string) (all []saying) {
	t.Helper()
	for _, f := range lines(t, "says.txt") {
		if len(f) != 5 || f[3] != "says" && f[3] != "never" {
			t.Fatalf("says.txt: %q is not state, server, question, says or never, words", f)
		}
		if f[0] == state && (f[1] == "both" || f[1] == kind) {
			all = append(all, saying{regexp.MustCompile("^(" + f[2] + ")$"), f[3] == "never",
				regexp.MustCompile("(?s)" + f[4])})
		}
	}
	return all
}

// wrong returns what is wrong with answers.
func wrong(t *testing.T, all []saying, answers map[string]string) error {
	t.Helper()
	for _, s := range all {
		about := 0
		for q, said := range answers {
			if !s.about.MatchString(q) {
				continue
			}
			about++
			if s.words.MatchString(said) == s.not {
				return fmt.Errorf("%s: it says %q: %t, want %t:\n%s", q, s.words, s.not, !s.not, said)
			}
		}
		if about == 0 {
			t.Fatalf("says.txt: no question is %q", s.about)
		}
	}
	return nil
}

// holds waits until all answers of a server are as says.txt has them in a state.
func (w *walk) holds(state, kind string, s *cluster.Server) {
	w.t.Helper()
	all := sayings(w.t, state, kind)
	w.eventually(state+": true answers of the "+kind, func(context.Context) error {
		return wrong(w.t, all, w.asked(s, kind, func(q string) bool {
			return slices.ContainsFunc(all, func(one saying) bool { return one.about.MatchString(q) })
		}))
	})
	if *walkOut != "" {
		w.write(state, kind, s)
	}
}
