package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsBackups stops and kills a global, and the client, during backups under writes. A file named as a backup
// holds all that was acknowledged before it began, and restores as a whole. An interrupted one leaves no such file, and
// the global continues.
func TestFaultsBackups(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	for i := range 3 {
		var all strings.Builder
		for j := range 100 {
			all.WriteString("---\n" + large(fmt.Sprintf("policy-%d-%d", i, j)))
		}
		m.apply(m.global, all.String())
	}
	link, err := cluster.NewLink(t.Context(), m.global.Address("api"))
	m.must(err)
	t.Cleanup(func() { _ = link.Close() })
	link.Set(cluster.Weather{BytesPerSecond: 300 << 10})
	l := newLedger(m.global, "g", "meshtimeouts", timeoutOf, timeoutValue)
	rng := rand.New(rand.NewPCG(*crashSeed, 37))
	pause, rounds := time.Second, 1
	if *faultsLong {
		pause, rounds = 40*time.Second, 6
	}
	whole, none := 0, 0
	for round := range rounds {
		for _, fault := range []string{"stop the global", "stop the program", "kill the global", "kill the program",
			"cut the way"} {
			name := fmt.Sprint("before-", round, strings.ReplaceAll(fault, " ", "-"))
			m.apply(m.global, timeout(name, "10s"))
			path := filepath.Join(m.Dir(), name+".backup")
			program, err := m.Command(name, "causewayctl", "backup", "create", path, "--address", "http://"+link.Address())
			m.must(err)
			ctx, end := context.WithCancel(t.Context())
			var g errgroup.Group
			g.Go(func() error { return l.insist(ctx, rand.New(rand.NewPCG(*crashSeed, uint64(round)))) })
			m.must(program.Start())
			during(t.Context(), time.Duration(rng.IntN(800))*time.Millisecond)
			switch fault {
			case "stop the global":
				m.global.Pause()
				during(t.Context(), pause)
				m.global.Resume()
			case "stop the program":
				program.Pause()
				during(t.Context(), pause)
				program.Resume()
			case "kill the global":
				m.global.Kill()
				m.must(m.global.Start(t.Context()))
			case "kill the program":
				program.Kill()
			case "cut the way":
				link.Reset(cluster.Weather{BytesPerSecond: 300 << 10})
			}
			answer := program.Wait(t.Context())
			end()
			m.must(g.Wait())
			m.must(l.settle(t.Context()))
			if _, err := os.Stat(path); answer == nil {
				whole++
				m.isWhole(path, name)
			} else if none++; fault != "kill the program" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: it answers %v, and leaves a backup (%v)", fault, answer, err)
			} else if err == nil {
				m.isWhole(path, name) // the client was killed after the file appeared
			}
		}
	}
	m.noProblems(m.global.API.URL())
	t.Logf("%d backups, %d interrupted, %d acknowledged writes", whole, none, l.written)
}

// isWhole restores a backup, and starts a global that has everything from before it.
func (m *mesh) isWhole(path, name string) {
	m.t.Helper()
	folder := filepath.Join(m.Dir(), "restored")
	m.must(os.RemoveAll(folder))
	_, err := m.Output(m.t.Context(), nil, "causewayctl", "restore", path, "--data-dir", folder)
	m.must(err)
	s, err := m.StartGlobal(m.t.Context(), cluster.GlobalConfig{Name: "restored",
		Args: []string{"--secrets-key-file", filepath.Join(m.global.DataDir, "secrets.key")}})
	m.must(err)
	defer s.Kill()
	all, err := timeouts(m.t.Context(), s)
	m.must(err)
	for i := range 300 {
		if _, ok := all[fmt.Sprintf("policy-%d-%d", i/100, i%100)]; !ok {
			m.t.Fatalf("%s lacks policy %d", path, i)
		}
	}
	if _, ok := all[name]; !ok {
		m.t.Errorf("%s lacks %s, which was acknowledged before it began", path, name)
	}
}
