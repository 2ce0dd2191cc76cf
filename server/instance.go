package server

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
)

// instanceBytes of randomness tell the runs of a server apart.
const instanceBytes = 5

// Instance is a new name for this run of a server: that of its machine, for people, and something that no other run
// has.
func Instance() string {
	raw := make([]byte, instanceBytes)
	_, _ = rand.Read(raw) // it never fails
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "server"
	}
	host, _, _ = strings.Cut(host, ".")
	return host + "-" + hex.EncodeToString(raw)
}
