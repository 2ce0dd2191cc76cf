//go:build linux && !amd64

package cluster

import "golang.org/x/sys/unix"

// CanRefuse reports whether this machine lets a step fail.
const CanRefuse = false

func skipCall(int) error { return ErrNoSteps }

func answerCall(int, unix.Errno) error { return ErrNoSteps }
