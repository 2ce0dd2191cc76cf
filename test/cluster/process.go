package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/causeway-mesh/causeway/panics"
)

// ErrNotRunning reports that the process has not been started, or has ended.
var ErrNotRunning = errors.New("the process does not run")

// Process is a program that may be started, killed and started again with the same arguments. All runs append their
// output to one file.
type Process struct {
	name, path string
	args       []string
	env        []string // in addition to the environment of the test
	logFile    string
	in         *Namespace // the network it runs in; nil for this one
	steps      *Steps     // may kill it at a step; nil does not trace it

	mu  sync.Mutex
	run *running // the last run, guarded by mu
}

// running is one run of a process.
type running struct {
	cmd   *exec.Cmd
	steps *Steps
	done  chan struct{}
	err   error // set before done is closed
}

// Name returns the name of the process in errors and logs.
func (p *Process) Name() string { return p.name }

// Start runs the program. It fails if the program already runs.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && !p.run.ended() {
		return fmt.Errorf("%s already runs", p.name)
	}
	out, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer out.Close() // the child has its own
	if _, err := fmt.Fprintf(out, "$ %s %s\n", filepath.Base(p.path), strings.Join(p.args, " ")); err != nil {
		return err
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), p.env...)
	cmd.SysProcAttr = processAttributes()
	r := &running{cmd: cmd, steps: p.steps, done: make(chan struct{})}
	p.steps.traced(cmd)
	if err := r.start(p.in); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.run = r
	return nil
}

// start starts the process and waits for it on one thread, which lives at least as long as the process: Linux sends the
// signal of [processAttributes] when the thread that started the process ends, not when the program does.
func (r *running) start(in *Namespace) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := in.Do(r.cmd.Start)
		started <- err
		if err == nil {
			r.err = r.steps.follow(r.cmd)
			close(r.done)
		}
	}()
	return <-started
}

// PID returns the number of the running process, or of the last one; zero before Start.
func (p *Process) PID() int {
	if r := p.current(); r != nil {
		return r.cmd.Process.Pid
	}
	return 0
}

// Alive returns nil while the process runs, and otherwise an error that describes how it ended. The error ends Until.
func (p *Process) Alive() error {
	r := p.current()
	if r == nil {
		return Final(fmt.Errorf("%s: %w", p.name, ErrNotRunning))
	}
	if r.ended() {
		how := "exit status 0"
		if r.err != nil {
			how = r.err.Error()
		}
		return Final(fmt.Errorf("%s: %w (%s); the end of its log:\n%s", p.name, ErrNotRunning, how, p.Tail(20)))
	}
	return nil
}

// Kill ends the process and its children as kill -9 does, and waits. It does nothing if the process has ended.
func (p *Process) Kill() {
	if r := p.current(); r != nil {
		r.signal(syscall.SIGKILL)
		<-r.done
	}
}

// Pause stops the process where it is, like a machine that hangs. Resume continues it.
func (p *Process) Pause() { p.send(syscall.SIGSTOP) }

// Resume ends Pause.
func (p *Process) Resume() { p.send(syscall.SIGCONT) }

func (p *Process) send(s syscall.Signal) {
	if r := p.current(); r != nil {
		r.signal(s)
	}
}

// Trace makes the process count its steps from its next start on. Nil ends that.
func (p *Process) Trace(s *Steps) { p.steps = s }

// Wait waits for the end of the process. It fails if it does not end with status 0, or if ctx ends first.
func (p *Process) Wait(ctx context.Context) error {
	r := p.current()
	if r == nil {
		return fmt.Errorf("%s: %w", p.name, ErrNotRunning)
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return fmt.Errorf("%s still runs: %w; the end of its log:\n%s", p.name, ctx.Err(), p.Tail(20))
	}
	if r.err != nil {
		return fmt.Errorf("%s ended with %w; the end of its log:\n%s", p.name, r.err, p.Tail(20))
	}
	return nil
}

// Stop sends SIGTERM and waits. It fails if the process ends with a status other than 0, or if ctx ends first. In that
// case it kills the process.
func (p *Process) Stop(ctx context.Context) error {
	r := p.current()
	if r == nil || r.ended() {
		return fmt.Errorf("stop %s: %w", p.name, ErrNotRunning)
	}
	r.signal(syscall.SIGTERM)
	select {
	case <-r.done:
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("%s did not end by SIGTERM: %w; the end of its log:\n%s", p.name, ctx.Err(), p.Tail(20))
	}
	if r.err != nil {
		return fmt.Errorf("%s ended by SIGTERM with %w; the end of its log:\n%s", p.name, r.err, p.Tail(20))
	}
	return nil
}

// Log returns the output of all runs.
func (p *Process) Log() string {
	raw, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// Tail returns the last lines of Log.
func (p *Process) Tail(lines int) string {
	all := strings.Split(strings.TrimRight(p.Log(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// panicked returns the first panic in the log: one that was recovered, or one that ended a run.
func (p *Process) panicked() error {
	log := p.Log()
	for _, sign := range []string{panics.Message, "\npanic: ", "\nfatal error: "} {
		if _, after, found := strings.Cut(log, sign); found {
			return fmt.Errorf("%s: %s%s", p.name, strings.TrimSpace(sign), after[:min(len(after), 4<<10)])
		}
	}
	return nil
}

func (p *Process) current() *running {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

func (r *running) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// signal sends s to the whole process group.
func (r *running) signal(s syscall.Signal) {
	if !r.ended() {
		_ = syscall.Kill(-r.cmd.Process.Pid, s)
	}
}
