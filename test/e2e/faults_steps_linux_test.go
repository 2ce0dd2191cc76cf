package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// stepped kills a program that changes a server's data folder at each of its steps in turn, always on a fresh folder.
type stepped struct {
	*mesh
	server *cluster.Server
	// prepare creates the folder, and sets args and the flags of the server, before the n-th kill.
	prepare func(n int)
	// program and args are what is killed; without a program, it is the starting server.
	program string
	args    []string
	// again are the arguments for repeating it, if they differ.
	again []string
	// whole checks a ready server.
	whole func(context.Context, *cluster.Server) error
	// refusal is the message of a server that does not start on what the kill left. If empty, it always starts.
	refusal string
	// refuses is set if steps fail, and nobody is killed.
	refuses bool
	kills   int
}

// maxSteps bounds the steps of one program. The short form goes through some of them.
const maxSteps, shortStride = 200, 12

// run kills at each step. After each kill, the server starts with everything, or refuses and says what to do. What was
// killed can be repeated, and then the server starts with everything.
func (s *stepped) run() {
	stride, first := 1, 1
	if !*faultsLong {
		stride, first = shortStride, 1+int(*crashSeed%shortStride)
	}
	for n := first; n < maxSteps; n += stride {
		if !s.killedAt(n) {
			s.t.Logf("%d steps; fewer than %d steps", s.kills, n+1)
			if s.kills == 0 {
				s.t.Error("nothing was done to it")
			}
			return
		}
		s.kills++
	}
	s.t.Errorf("there are more than %d steps", maxSteps)
}

// killedAt reports whether there is an n-th step.
func (s *stepped) killedAt(n int) bool {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	s.must(os.RemoveAll(s.server.DataDir))
	s.prepare(n)
	steps := &cluster.Steps{}
	if s.refuses {
		steps.RefuseAt(n, s.server.DataDir)
	} else {
		steps.KillAt(n, s.server.DataDir)
	}
	err := s.killed(ctx, n, steps)
	step := strings.ReplaceAll(steps.Reached(), s.server.DataDir, "DIR")
	if step == "" {
		s.must(err) // it completed, and may be repeated anyway: its caller may not have heard of it
		step = "none"
	}
	if s.refuses && err == nil {
		if err := s.starts(ctx); err != nil {
			s.t.Errorf("though step %d (%s) failed it said that it is done: %v", n, step, err)
		}
	}
	if s.program != "" && !s.nothingYet() {
		if err := s.starts(ctx); err != nil && (s.refusal == "" || !strings.Contains(err.Error(), s.refusal)) {
			s.t.Errorf("at step %d (%s), the server believes half or does not start: %v", n, step, err)
		}
	}
	s.repeated(ctx, n, step)
	return steps.Reached() != ""
}

// repeated runs the killed program to its end, and starts the server.
func (s *stepped) repeated(ctx context.Context, n int, step string) {
	args := s.args
	if s.again != nil {
		args = s.again
	}
	if s.program != "" {
		if out, err := s.Output(ctx, nil, s.program, args...); err != nil {
			s.t.Errorf("after step %d (%s), it cannot be repeated: %s %v", n, step, out, err)
			return
		}
	}
	if err := s.starts(ctx); err != nil {
		s.t.Errorf("after step %d (%s), and repeated: %v", n, step, err)
	}
}

// killed runs to the end, or to the kill.
func (s *stepped) killed(ctx context.Context, n int, steps *cluster.Steps) error {
	if s.program == "" {
		s.server.Trace(steps)
		defer s.server.Trace(nil)
		defer s.server.Kill()
		return s.server.Start(ctx)
	}
	p, err := s.Command(fmt.Sprint("step-", n), s.program, s.args...)
	s.must(err)
	p.Trace(steps)
	s.must(p.Start())
	return p.Wait(ctx)
}

// nothingYet reports whether nothing happened to the folder that a start could notice.
func (s *stepped) nothingYet() bool {
	visible, err := filepath.Glob(filepath.Join(s.server.DataDir, "[^.]*"))
	s.must(err)
	return len(visible) == 0
}

// starts starts the server, checks it, and kills it.
func (s *stepped) starts(ctx context.Context) error {
	if err := s.server.Start(ctx); err != nil {
		return errors.New(s.server.Tail(1))
	}
	defer s.server.Kill()
	return s.whole(ctx, s.server)
}

// copied makes prepare copy a folder.
func (s *stepped) copied(from string) func(int) {
	return func(int) { s.must(exec.Command("cp", "-a", from, s.server.DataDir).Run()) }
}

// steppedGlobal returns a stopped global that had a policy and a zone, a backup of it, and a copy of its folder.
func steppedGlobal(t *testing.T) (s *stepped, backup, source string) {
	m := newCluster(t)
	var err error
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{})
	m.must(err)
	s = &stepped{mesh: m, server: m.global, whole: hasEarly}
	m.apply(m.global, earlyTimeout)
	_, err = m.CTL(t.Context(), m.global, nil, "zone", "create", "zone-1")
	m.must(err)
	backup, source = filepath.Join(m.Dir(), "backup"), filepath.Join(m.Dir(), "source")
	_, err = m.CTL(t.Context(), m.global, nil, "backup", "create", backup)
	m.must(err)
	m.must(m.global.Stop(t.Context()))
	m.must(exec.Command("cp", "-a", m.global.DataDir, source).Run())
	s.prepare = s.copied(source)
	return s, backup, source
}

// hasEarly checks that the global has its policy and its zone.
func hasEarly(ctx context.Context, global *cluster.Server) error {
	all, err := timeouts(ctx, global)
	if err == nil && all["early"].Name == "" {
		err = errors.New("it is ready, and lacks the policy")
	}
	if err != nil {
		return err
	}
	return global.API.Get(ctx, "/zones/zone-1/_credentials", nil)
}

// TestFaultsSteps kills programs at each step at which they change a data folder.
func TestFaultsSteps(t *testing.T) {
	t.Parallel()
	if err := cluster.CanTrace(); err != nil {
		t.Log(err) // which is no failure of the server
		return
	}
	for name, prepared := range inSteps() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prepared(t).run()
		})
	}
}

// TestFaultsRefusedSteps makes each of the same steps, and each write to a file, fail once, as on a full or briefly
// failing disk. A reported success is complete; a reported failure can be repeated to its end.
func TestFaultsRefusedSteps(t *testing.T) {
	t.Parallel()
	if err := cluster.CanTrace(); err != nil || !cluster.CanRefuse {
		t.Log(err) // which is no failure of the server
		return
	}
	for name, prepared := range inSteps() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := prepared(t)
			s.refuses = true
			s.run()
		})
	}
}
