package cni

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// inNetwork runs f in another network namespace, on a thread of its own, which ends after it.
func inNetwork(path string, f func() error) error {
	network, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the pod's network: %w", err)
	}
	defer network.Close()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("the pod's network: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}
