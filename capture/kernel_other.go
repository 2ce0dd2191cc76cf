//go:build !linux

package capture

// Install installs a capture.
func Install(Settings) (changed bool, err error) { return false, ErrNotLinux }

// Uninstall removes a capture.
func Uninstall() (removed bool, err error) { return false, ErrNotLinux }

// Read compares the kernel's rules with those that Install wrote.
func Read() (*Status, error) { return nil, ErrNotLinux }
