package cluster

import "golang.org/x/sys/unix"

// CanRefuse reports whether this machine lets a step fail.
const CanRefuse = true

// skipCall makes the kernel skip the call that a thread is about to make.
func skipCall(thread int) error {
	var registers unix.PtraceRegs
	if err := unix.PtraceGetRegs(thread, &registers); err != nil {
		return err
	}
	registers.Orig_rax = ^uint64(0)
	return unix.PtraceSetRegs(thread, &registers)
}

// answerCall sets the result of a call.
func answerCall(thread int, result unix.Errno) error {
	var registers unix.PtraceRegs
	if err := unix.PtraceGetRegs(thread, &registers); err != nil {
		return err
	}
	registers.Rax = uint64(-int64(result)) //nolint:gosec // two's complement is what the kernel returns
	return unix.PtraceSetRegs(thread, &registers)
}
