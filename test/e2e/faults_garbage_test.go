package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsFilesOfGarbage empties each file beside the store of a global and of a zone, or fills it with garbage, as a
// crashed file system does, and starts the server on it. It has what it had, or does not start and names the file. What only
// repeats what the server knows keeps none from starting.
func TestFaultsFilesOfGarbage(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	zone := m.zones["zone-1"]
	m.apply(m.global, timeout("early", "10s"))
	m.apply(zone, timeout("of-the-zone", "10s"))
	m.arrives(zone, "early")
	m.arrives(m.global, "of-the-zone")
	m.must(zone.Stop(t.Context()))
	m.must(m.global.Stop(t.Context()))
	for _, s := range []*cluster.Server{m.global, zone} {
		for i, name := range m.filesBeside(s) {
			contents := [][]byte{nil, []byte("\x00\xffgarbage\n{")}
			if !*faultsLong {
				contents = contents[i%2 : i%2+1]
			}
			for _, content := range contents {
				m.startsOn(s, name, content)
			}
		}
	}
	m.must(m.global.Start(t.Context()))
	m.must(zone.Start(t.Context()))
	m.apply(m.global, timeout("late", "10s"))
	m.arrives(zone, "late")
	m.noProblems(m.global.API.URL())
}

// filesBeside lists the files in a server's data folder other than its store.
func (m *mesh) filesBeside(s *cluster.Server) (names []string) {
	m.t.Helper()
	m.must(filepath.WalkDir(s.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != "causeway.db" {
			name, _ := filepath.Rel(s.DataDir, path)
			names = append(names, name)
		}
		return err
	}))
	if len(names) < 3 {
		m.t.Fatalf("%s has the files %v", s.Name(), names)
	}
	return names
}

// startsOn starts a server whose file has another content, and puts its folder back.
func (m *mesh) startsOn(s *cluster.Server, name string, content []byte) {
	m.t.Helper()
	kept := m.t.TempDir()
	m.must(os.CopyFS(kept, os.DirFS(s.DataDir)))
	path := filepath.Join(s.DataDir, name)
	info, err := os.Stat(path)
	m.must(err)
	m.must(os.WriteFile(path, content, info.Mode()))
	logged := len(s.Log())
	if err := s.Start(m.t.Context()); err == nil {
		m.t.Logf("%s with %q in %s starts", s.Name(), content, name)
		m.arrives(s, "early")
		m.arrives(s, "of-the-zone")
		m.must(s.Stop(m.t.Context()))
	} else if said := s.Log()[logged:]; name != "context.yaml" && strings.Contains(said, filepath.Base(name)) {
		m.t.Logf("%s with %q in %s does not start", s.Name(), content, name)
	} else {
		m.t.Errorf("%s with %q in %s does not start, or does not name it:\n%s", s.Name(), content, name, said)
	}
	m.must(filepath.WalkDir(kept, func(from string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, _ := filepath.Rel(kept, from)
		raw, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(s.DataDir, rel), raw, 0o600)
		}
		return err
	}))
}
