package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/google/uuid"
)

// ClusterIDFile is the name of the file in a data directory.
const ClusterIDFile = "cluster-id"

// ClusterID reads the ID that distinguishes this installation from others, from the file at path. The first start
// creates it, and nothing changes it later. It fails if the file is damaged, because those who know the server by its
// ID would see another server.
func ClusterID(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		id := uuid.NewString()
		return id, WriteFile(path, []byte(id+"\n"), 0o644)
	}
	if err != nil {
		return "", err
	}
	id, err := uuid.Parse(strings.TrimSpace(string(raw)))
	if err != nil {
		return "", fmt.Errorf("%s: %w: remove the file for a new id", path, err)
	}
	return id.String(), nil
}
