package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
)

// browserProgram returns the program that opens a URL in the person's browser, with its first arguments.
func browserProgram() []string {
	switch runtime.GOOS {
	case "darwin":
		return []string{"open"}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	return []string{"xdg-open"}
}

// canOpenBrowser reports whether a browser is likely to open before the person: there is a screen, and it is not that of
// a machine that the person reaches by SSH.
func canOpenBrowser() bool {
	if os.Getenv("SSH_CONNECTION") != "" {
		return false
	}
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" && os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return false
	}
	_, err := exec.LookPath(browserProgram()[0])
	return err == nil
}

// openBrowser opens an https URL in the person's browser. It does not wait for it.
func openBrowser(ctx context.Context, at string) error {
	if !canOpenBrowser() {
		return exec.ErrNotFound
	}
	program := browserProgram()
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program[0], append(program[1:], at)...) //nolint:gosec // the session has checked the URL
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // it ends by itself, or with this process
	return nil
}
