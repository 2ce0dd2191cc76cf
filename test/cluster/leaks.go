package cluster

import (
	"fmt"
	"net/http"
	"os"

	"go.uber.org/goleak"
)

// Leaks returns the exit status of a package's tests, given the one of its tests alone: it fails if goroutines of tests
// that passed still run.
func Leaks(status int) int {
	if status != 0 {
		return status
	}
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
