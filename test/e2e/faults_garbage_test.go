package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsFilesOfGarbage empties each file beside the store of a global and of a zone, or fills it with garbage, as a
// crashed file system does, and starts the server. It has lost nothing, or does not start and names the file. A file
// with only redundant content prevents no start.
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
				m.startsOn(s, name, fmt.Sprintf("%q", content), content)
			}
		}
	}
	m.must(m.global.Start(t.Context()))
	m.must(zone.Start(t.Context()))
	m.apply(m.global, timeout("late", "10s"))
	m.arrives(zone, "late")
	m.noProblems(m.global.API.URL())
}

// TestFaultsFlippedFiles flips a bit of each file of a global and of a zone, or truncates the file, and starts both.
// They have lost nothing and sync again, or the server does not start and names the file: it never continues with less.
func TestFaultsFlippedFiles(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	zone, rng := m.zones["zone-1"], rand.New(rand.NewPCG(*crashSeed, 31))
	m.apply(m.global, timeout("early", "10s"))
	m.apply(zone, timeout("of-the-zone", "10s"))
	m.arrives(zone, "early")
	m.arrives(m.global, "of-the-zone")
	m.must(zone.Stop(t.Context()))
	m.must(m.global.Stop(t.Context()))
	for s, peer := range map[*cluster.Server]*cluster.Server{zone: m.global, m.global: zone} {
		names := append(m.filesBeside(s), "causeway.db")
		times := 1
		if *faultsLong {
			times = 6
		} else {
			names = []string{names[rng.IntN(len(names)-1)], "causeway.db"}
		}
		for _, name := range names {
			whole, err := os.ReadFile(filepath.Join(s.DataDir, name))
			m.must(err)
			for range times {
				how, content := damaged(rng, whole)
				m.startsOn(s, name, how, content, peer)
			}
		}
	}
	m.must(m.global.Start(t.Context()))
	m.must(zone.Start(t.Context()))
	m.apply(m.global, timeout("late", "10s"))
	m.arrives(zone, "late")
	m.apply(zone, timeout("late-of-the-zone", "10s"))
	m.arrives(m.global, "late-of-the-zone")
	m.noProblems(m.global.API.URL())
	m.noProblems(zone.API.URL())
}

// damaged returns a content with one bit flipped, or truncated.
func damaged(rng *rand.Rand, whole []byte) (how string, content []byte) {
	used := len(bytes.TrimRight(whole, "\x00")) // a store has room behind it
	if used == 0 {
		return "a byte where nothing was", []byte("x")
	}
	at := rng.IntN(used)
	if rng.IntN(3) == 0 {
		return fmt.Sprintf("%d of %d bytes", at, len(whole)), whole[:at]
	}
	content, bit := bytes.Clone(whole), rng.IntN(8)
	content[at] ^= 1 << bit
	return fmt.Sprintf("bit %d of byte %d flipped", bit, at), content
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

// startsOn starts a server whose file has another content, which how describes, and restores its folder. Peers start
// after it, and have the same resources.
func (m *mesh) startsOn(s *cluster.Server, name, how string, content []byte, peers ...*cluster.Server) {
	m.t.Helper()
	for _, one := range append(peers, s) {
		defer m.putBack(one, m.keptOf(one))
	}
	path := filepath.Join(s.DataDir, name)
	info, err := os.Stat(path)
	m.must(err)
	m.must(os.WriteFile(path, content, info.Mode()))
	logged := len(s.Log())
	if err := s.Start(m.t.Context()); err == nil {
		m.t.Logf("%s with %s in %s starts", s.Name(), how, name)
		defer func() { m.must(s.Stop(m.t.Context())) }()
		for _, one := range peers {
			m.must(one.Start(m.t.Context()))
			defer func() { m.must(one.Stop(m.t.Context())) }()
			m.written(one, s)
			m.written(s, one)
		}
		for _, one := range append(peers, s) {
			m.arrives(one, "early")
			m.arrives(one, "of-the-zone")
		}
	} else if said := s.Log()[logged:]; name != "context.yaml" && (strings.Contains(said, filepath.Base(name)) ||
		name == "secrets.key" && strings.Contains(said, "the key file that the server was given")) {
		m.t.Logf("%s with %s in %s does not start", s.Name(), how, name)
	} else {
		m.t.Errorf("%s with %s in %s does not start, or does not name it:\n%s", s.Name(), how, name, said)
	}
}

// written writes a policy on a server, which syncs to another.
func (m *mesh) written(on, to *cluster.Server) {
	m.t.Helper()
	name := "written-on-" + on.Name()
	m.apply(on, timeout(name, "10s"))
	m.arrives(to, name)
}

// keptOf returns a copy of a stopped server's folder.
func (m *mesh) keptOf(s *cluster.Server) string {
	kept := m.t.TempDir()
	m.must(os.CopyFS(kept, os.DirFS(s.DataDir)))
	return kept
}

// putBack writes each file of a copy back into a server's folder.
func (m *mesh) putBack(s *cluster.Server, kept string) {
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
