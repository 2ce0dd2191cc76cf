package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrNoSteps reports that this machine does not let a process trace its children.
var ErrNoSteps = errors.New("this machine lets us trace no process")

// Steps kills a process at a step, immediately before a call that changes what the next start finds on the disk, or
// makes that call fail. The program does not notice. It is safe for concurrent use.
type Steps struct {
	mu      sync.Mutex
	within  string // count calls that concern a path with this text
	left    int    // steps until it happens; 0 for none. Guarded by mu
	reached string // the step at which it happened. Guarded by mu
	refuses bool   // the call fails, and no process is killed. Guarded by mu
}

// KillAt kills the process at the n-th step from now on, counted from 1. It forgets an earlier kill. Only calls whose
// path contains within count; all count if it is empty.
func (s *Steps) KillAt(n int, within string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.within, s.reached, s.refuses = n, within, "", false
}

// RefuseAt is like KillAt, but only the step fails, not what follows: with "no space left on device" or, for a step
// that needs no space, with an input/output error. Writes to files count as steps, too.
func (s *Steps) RefuseAt(n int, within string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.within, s.reached, s.refuses = n, within, "", true
}

func (s *Steps) isRefusal() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refuses
}

// Reached returns the step at which it happened, such as "rename /data/ca.key", or "" if it did not.
func (s *Steps) Reached() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached
}

// count reports whether it happens at this step.
func (s *Steps) count(step string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 || !strings.Contains(step, s.within) {
		return false
	}
	if s.left--; s.left > 0 {
		return false
	}
	s.reached = step
	return true
}

// CanTrace returns an error that wraps ErrNoSteps if this machine does not let a process trace its children.
func CanTrace() error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = processAttributes()
	r := &running{cmd: cmd, steps: &Steps{}, done: make(chan struct{})}
	r.steps.traced(cmd)
	if err := r.start(nil); err != nil {
		return fmt.Errorf("%w: %w", ErrNoSteps, err)
	}
	<-r.done
	if r.err != nil {
		return fmt.Errorf("%w: %w", ErrNoSteps, r.err)
	}
	return nil
}

// ptraceOptions make threads of the process stop at each call, and end the process with this program.
const ptraceOptions = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK |
	unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_EXITKILL

// traced prepares a program for follow.
func (s *Steps) traced(cmd *exec.Cmd) {
	if s != nil {
		cmd.SysProcAttr.Ptrace = true
	}
}

// follow waits for the end of a process that this thread has started. nil only waits.
func (s *Steps) follow(cmd *exec.Cmd) error {
	if s == nil {
		return cmd.Wait()
	}
	leader := cmd.Process.Pid
	seen, refused := map[int]bool{}, map[int]string{}
	for {
		var status unix.WaitStatus
		// The process leads its own process group. This thread may have started other processes before, which others
		// wait for.
		thread, err := unix.Wait4(-leader, &status, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case status.Exited() || status.Signaled():
			if thread == leader {
				return endOf(status)
			}
			continue
		}
		pass := 0
		switch signal := status.StopSignal(); {
		case !seen[thread]:
			seen[thread] = true // its first stop belongs to the tracing
			if thread == leader {
				if err := unix.PtraceSetOptions(thread, ptraceOptions); err != nil {
					_ = unix.Kill(leader, unix.SIGKILL)
					return err
				}
			}
		case signal == unix.SIGTRAP|0x80:
			s.atCall(leader, thread, refused)
		case signal != unix.SIGTRAP:
			pass = int(signal)
		}
		_ = unix.PtraceSyscall(thread, pass) // fails for a thread that has just been killed
	}
}

// atCall handles the begin or end of a call. refused holds the calls that fail, by thread.
func (s *Steps) atCall(leader, thread int, refused map[int]string) {
	if step, ok := refused[thread]; ok {
		delete(refused, thread)
		_ = answerCall(thread, errorOf(step)) // fails for a thread that has just been killed
		return
	}
	refuses := s.isRefusal()
	step := stepOf(thread, refuses)
	switch {
	case step == "" || !s.count(step):
	case !refuses:
		_ = unix.Kill(leader, unix.SIGKILL)
	case skipCall(thread) == nil:
		refused[thread] = step
	}
}

// errorOf returns the error with which a step fails.
func errorOf(step string) unix.Errno {
	for _, needs := range []string{"create", "mkdir", "link", "rename", "write"} {
		if strings.HasPrefix(step, needs+" ") {
			return unix.ENOSPC
		}
	}
	return unix.EIO
}

// endOf returns nil for a process that ended with status 0.
func endOf(status unix.WaitStatus) error {
	switch {
	case status.Signaled():
		return fmt.Errorf("signal: %s", status.Signal())
	case status.ExitStatus() != 0:
		return fmt.Errorf("exit status %d", status.ExitStatus())
	}
	return nil
}

// syscallInfo is struct ptrace_syscall_info of linux/ptrace.h, for the entry of a call.
type syscallInfo struct {
	op      uint8
	_       [3]uint8
	_       uint32
	_, _    uint64
	number  uint64
	args    [6]uint64
	padding [16]uint64
}

const (
	ptraceGetSyscallInfo = 0x420e
	syscallEntry         = 1
)

// stepOf describes the call that a thread is about to make, or returns "" if it changes nothing on the disk. With
// writes, writes to files count, too.
func stepOf(thread int, writes bool) string {
	var info syscallInfo
	_, _, failed := unix.Syscall6(unix.SYS_PTRACE, ptraceGetSyscallInfo, uintptr(thread), unsafe.Sizeof(info),
		uintptr(unsafe.Pointer(&info)), 0, 0)
	if failed != 0 || info.op != syscallEntry {
		return ""
	}
	switch info.number {
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return "rename " + pathOf(thread, info.args[0], info.args[1]) + " to " +
			pathOf(thread, info.args[2], info.args[3])
	case unix.SYS_LINKAT:
		return "link " + pathOf(thread, info.args[2], info.args[3])
	case unix.SYS_UNLINKAT:
		return "unlink " + pathOf(thread, info.args[0], info.args[1])
	case unix.SYS_MKDIRAT:
		return "mkdir " + pathOf(thread, info.args[0], info.args[1])
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		return "sync " + fileOf(thread, info.args[0])
	case unix.SYS_FTRUNCATE:
		return "truncate " + fileOf(thread, info.args[0])
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		if writes {
			return "write " + fileOf(thread, info.args[0])
		}
	case unix.SYS_OPENAT:
		if info.args[2]&unix.O_CREAT != 0 {
			return "create " + pathOf(thread, info.args[0], info.args[1])
		}
	}
	return ""
}

// pathOf returns the path of a call: the text at an address, below an open folder.
func pathOf(thread int, folder, address uint64) string {
	text := make([]byte, 0, 256)
	word := make([]byte, 8)
	for len(text) < cap(text) {
		n, err := unix.PtracePeekData(thread, uintptr(address)+uintptr(len(text)), word)
		if err != nil || n < len(word) {
			break
		}
		text = binary.NativeEndian.AppendUint64(text, binary.NativeEndian.Uint64(word))
		if strings.IndexByte(string(word), 0) >= 0 {
			break
		}
	}
	path, _, _ := strings.Cut(string(text), "\x00")
	if strings.HasPrefix(path, "/") || int32(folder) == unix.AT_FDCWD { //nolint:gosec // a file descriptor
		return path
	}
	return fileOf(thread, folder) + "/" + path
}

// fileOf returns the path of an open file.
func fileOf(thread int, fd uint64) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", thread, fd))
	if err != nil {
		return "a file"
	}
	return path
}
