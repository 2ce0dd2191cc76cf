package server

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
)

// instanceBytes of randomness distinguish the runs of a server.
const instanceBytes = 5

// Instance returns a new name for this run of a server: its machine's name, for people, and a unique suffix.
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
