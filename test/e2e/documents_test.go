package e2e

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// problemField extracts the field of a problem: `document 1 (Mesh a): spec.default: ...`, or `Mesh a: spec.default:
// ...`.
var problemField = regexp.MustCompile(`(?m)^(?:document \d+(?: \([^)]*\))?|[A-Z]\w+ \S+): ([^:]+):`)

// TestBrokenDocuments sends each of the model's broken documents to a zone that runs alone, through the command line
// and directly. Both answers name the field, and nothing is stored. The model's own test data says what is wrong with
// each.
func TestBrokenDocuments(t *testing.T) {
	t.Parallel()
	m := newCluster(t)
	zone := m.startZone("zone-1")
	root, err := cluster.Root()
	m.must(err)
	archive, err := txtar.ParseFile(filepath.Join(root, "resources", "testdata", "broken.txtar"))
	m.must(err)
	before, err := zone.Revision(t.Context())
	m.must(err)

	documents := map[string][]byte{}
	fields := map[string]string{}
	for _, f := range archive.Files {
		name, isProblems := strings.CutSuffix(f.Name, ".problems")
		if !isProblems {
			documents[name] = f.Data
		} else if found := problemField.FindSubmatch(f.Data); found != nil {
			fields[name] = string(found[1])
		}
	}
	if len(documents) < 40 || len(fields) != len(documents) {
		t.Fatalf("%d documents, for %d of them a field is known; want at least 40, all known", len(documents), len(fields))
	}
	dir := t.TempDir()
	for name, text := range documents {
		m.must(os.WriteFile(filepath.Join(dir, name), text, 0o600))
		t.Run(name, func(t *testing.T) { refusedByServer(t, zone, text, fields[name]) })
	}
	refusedByCommand(m, zone, dir, fields)
	// All of them in one directory with a valid one, which is not stored either.
	for name, text := range documents {
		m.must(os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	good := "{type: MeshTimeout, mesh: default, name: good, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: 1s}}}]}}"
	m.must(os.WriteFile(filepath.Join(dir, "0-good.yaml"), []byte(good), 0o600))
	if _, err := m.CTL(t.Context(), zone, nil, "apply", "-f", dir); exitStatus(err) != 1 {
		t.Errorf("the whole directory: %v, want exit status 1", err)
	}
	after, err := zone.Revision(t.Context())
	m.must(err)
	if after != before {
		t.Errorf("the store's revision went from %v to %v: something was stored", before, after)
	}
}

// TestUnreasonableRequests checks that an error in a request as a whole, or in what it refers to, is a 4xx that
// describes it.
func TestUnreasonableRequests(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	m.eventually("what the zone writes by itself", func(ctx context.Context) error {
		trusts, err := m.global.API.List(ctx, "/meshes/default/meshtrusts")
		if err == nil && len(trusts) == 0 {
			err = errNotYet
		}
		return err
	})
	before, err := m.global.Revision(t.Context())
	m.must(err)
	big := strings.Repeat("# nothing to see here\n", 5<<20/22+1) + systemOfGlobal
	for _, tt := range []struct {
		name, body, want string
		server           *cluster.Server
	}{
		{"5 MiB", big, "large", m.global},
		{"unknown mesh", strings.ReplaceAll(systemOfGlobal, "mesh: default", "mesh: nowhere"), "mesh", m.global},
		{"a zone's type on the global", "{type: Dataplane, mesh: default, name: d, networking: {address: 10.0.0.1, inbound: [{port: 80}]}}", "type", m.global},
		{"a namespace on the global", producer, "namespace", m.global},
		{"a global's type on a zone", "{type: Mesh, name: m}", "type", m.zones["zone-1"]},
	} {
		t.Run(tt.name, func(t *testing.T) { refusedByServer(t, tt.server, []byte(tt.body), tt.want) })
	}
	after, err := m.global.Revision(t.Context())
	m.must(err)
	if after != before {
		t.Errorf("the store's revision went from %v to %v: something was stored", before, after)
	}
}

// refusedByCommand applies a directory of broken documents, then what was not named of it, until all were: the command
// first names what it finds itself, and then what the server does. Each document is named with its field.
func refusedByCommand(m *mesh, zone *cluster.Server, dir string, fields map[string]string) {
	m.t.Helper()
	for left := maps.Clone(fields); len(left) > 0; {
		_, err := m.CTL(m.t.Context(), zone, nil, "apply", "-f", dir)
		if exitStatus(err) != 1 {
			m.t.Fatalf("causewayctl: %v, want exit status 1", err)
		}
		named := 0
		for name, field := range left {
			file := filepath.Join(dir, name)
			about := linesWith(err.Error(), file)
			if about == "" {
				continue
			}
			if !strings.Contains(about, field) {
				m.t.Errorf("%s: causewayctl does not name %q: %s", name, field, about)
			}
			named++
			delete(left, name)
			m.must(os.Remove(file))
		}
		if named == 0 {
			m.t.Fatalf("causewayctl names none of %v: %v", slices.Collect(maps.Keys(left)), err)
		}
	}
}

// linesWith returns the lines of a text that are about a file.
func linesWith(text, file string) string {
	var about []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), file) {
			about = append(about, line)
		}
	}
	return strings.Join(about, "")
}

func refusedByServer(t *testing.T, zone *cluster.Server, text []byte, field string) {
	t.Helper()
	resp, err := http.Post(zone.API.URL()+"/_batch", "application/yaml", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode/100 != 4 {
		t.Fatalf("POST /_batch: %s, want a 4xx: %s", resp.Status, &body)
	}
	quoted := strings.ReplaceAll(field, `"`, `\"`)
	if !strings.Contains(body.String(), field) && !strings.Contains(body.String(), quoted) {
		t.Errorf("POST /_batch does not name %q: %s", field, &body)
	}
}

// exitStatus returns the exit status of a program that CTL ran, or 0.
func exitStatus(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}
