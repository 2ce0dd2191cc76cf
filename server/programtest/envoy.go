package programtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Envoy returns the path of the Envoy that tests start: that in $ENVOY, or the one that `make tools` installed. It looks
// at the file, so that the go command runs a test again when another Envoy is there. Starting one would not do.
func Envoy() (string, error) {
	path := os.Getenv("ENVOY")
	if path == "" {
		root, err := Root()
		if err != nil {
			return "", err
		}
		path = filepath.Join(root, ".tools", "bin", "envoy")
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("no Envoy: run make tools, or set ENVOY to its path: %w", err)
	}
	return found, nil
}
