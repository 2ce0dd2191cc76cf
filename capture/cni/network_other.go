//go:build !linux

package cni

import "github.com/causeway-mesh/causeway/capture"

func inNetwork(string, func() error) error { return capture.ErrNotLinux }
