//go:build !linux

package capture

// Install installs a capture.
func Install(Settings) (changed bool, err error) { return false, ErrNotLinux }

// Uninstall removes a capture.
func Uninstall() (removed bool, err error) { return false, ErrNotLinux }

// Read compares what the kernel has with what Install put there.
func Read() (*Status, error) { return nil, ErrNotLinux }
