package abuse

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// row is one attempt and its twin.
//
//   - name: an expired token        what is attempted, in words
//     on: global                    or zone
//     do: ""                        the name of a function in attempts; empty for an HTTP request
//     as: expired                   a credential: see credentials
//     request: GET /zones
//     status: "401"                 what the attempt ends with; a gRPC code for functions that speak gRPC
//     audit: {event: login}         what the audit line says; absent where a connection ends before anybody is asked
//     right: {as: admin}            what is different about the twin, which must succeed
type row struct {
	Name string `json:"name"`
	On   string `json:"on"`
	side
	Status string `json:"status"`
	// Says is a part of the answer.
	Says string `json:"says"`
	// Audit is the line that the attempt leaves; nil for none.
	Audit *line `json:"audit"`
	// Right is laid over the attempt.
	Right *twin `json:"right"`
}

// side is one of the two ways to do it.
type side struct {
	Do      string            `json:"do"`
	As      string            `json:"as"`
	Request string            `json:"request"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	// With are words for the function.
	With map[string]string `json:"with"`
}

// twin is what differs; an empty field is as in the attempt, "none" empties a header or the body.
type twin struct {
	side
	// Status is what the twin ends with; any success when empty.
	Status string `json:"status"`
}

// line is what must be found in one line of the audit log.
type line struct {
	Event   string `json:"event"`
	Outcome string `json:"outcome"`
	User    string `json:"user"`
	Missing string `json:"missing"`
}

// rowsOf reads all files of testdata.
func rowsOf(t *testing.T) []row {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []row
	names := map[string]bool{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rows []row
		if err := yaml.UnmarshalStrict(raw, &rows); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range rows {
			if err := rows[i].check(names); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		all = append(all, rows...)
	}
	return all
}

func (r *row) check(names map[string]bool) error {
	switch {
	case r.Name == "" || names[r.Name]:
		return fmt.Errorf("row %q: want a name of its own", r.Name)
	case r.On != "global" && r.On != "zone":
		return fmt.Errorf("row %q: on is %q", r.Name, r.On)
	case r.Status == "":
		return fmt.Errorf("row %q: no status", r.Name)
	case r.Right == nil:
		return fmt.Errorf("row %q: no twin: it could pass by accident", r.Name)
	}
	names[r.Name] = true
	return nil
}

// rightSide is the attempt with what the twin changes.
func (r *row) rightSide() side {
	out := r.side
	over := r.Right.side
	for _, one := range []struct{ into, from *string }{{&out.Do, &over.Do}, {&out.As, &over.As}, {&out.Request, &over.Request}, {&out.Body, &over.Body}} {
		if *one.from != "" {
			*one.into = *one.from
		}
		if *one.into == "none" && one.into == &out.Body {
			*one.into = ""
		}
	}
	out.Headers, out.With = laid(r.Headers, over.Headers), laid(r.With, over.With)
	return out
}

// laid is a with b over it; a value "none" takes one away.
func laid(a, b map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			out[k] = v
			if v == "none" {
				delete(out, k)
			}
		}
	}
	return out
}
