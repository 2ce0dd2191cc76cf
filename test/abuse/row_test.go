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
//   - name: an expired token        a description of the attempt
//     on: global                    or zone
//     do: ""                        the name of a function in attempts; empty for an HTTP request
//     as: expired                   a credential: see credentials
//     request: GET /zones
//     status: "401"                 the status of the attempt; a gRPC code for functions that speak gRPC
//     audit: {event: login}         fields of the audit line; absent if the connection ends before authentication
//     right: {as: admin}            the differences of the twin, which must succeed
type row struct {
	Name string `json:"name"`
	On   string `json:"on"`
	side
	Status string `json:"status"`
	// Says must be a part of the answer.
	Says string `json:"says"`
	// Audit describes the line that the attempt leaves; nil for none.
	Audit *line `json:"audit"`
	// Right overrides the attempt's fields for the twin.
	Right *twin `json:"right"`
}

// side is the attempt or its twin.
type side struct {
	Do      string            `json:"do"`
	As      string            `json:"as"`
	Request string            `json:"request"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	// With holds parameters for the function.
	With map[string]string `json:"with"`
}

// twin holds the differences. An empty field keeps the attempt's value; "none" clears a header or the body.
type twin struct {
	side
	// Status is the status of the twin; any success if empty.
	Status string `json:"status"`
}

// line describes what one line of the audit log must contain.
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

// rightSide returns the attempt with the twin's changes.
func (r *row) rightSide() side {
	out := r.side
	over := r.Right.side
	for _, one := range []struct{ into, from *string }{{&out.Do, &over.Do}, {&out.As, &over.As},
		{&out.Request, &over.Request}, {&out.Body, &over.Body}} {
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

// laid returns a overridden by b. The value "none" removes a key.
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
