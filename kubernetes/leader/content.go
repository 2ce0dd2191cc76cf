package leader

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// The Secrets, named after the Lease: LEASE-core has the small files of the data folder, LEASE-store-N the resources,
// LEASE-log what changed since those were written, and LEASE-holdings-N what proxies were issued. Their number is fixed,
// so that a role can name them.
const (
	coreSuffix = "core"
	logSuffix  = "log"
	// storeShards divides the resources by a hash of their keys.
	storeShards = 8
	// holdingsParts divides the file of what proxies were issued, by position: it mostly grows at its end.
	holdingsParts = 16
)

// maxSecret bounds a sealed part, in bytes: a Secret holds 1 MiB. maxOpened bounds an opened one.
const (
	maxSecret = 1000 << 10
	maxOpened = 256 << 20
)

// holdingsFile is that of zone/checkpoint: sealed lines, of which each stands alone.
const holdingsFile = "holdings.sealed"

// content is the plain content of a Secret.
type content struct {
	// Term is the lead in which it was written. A later one never gives way to an earlier one.
	Term int `json:"term"`
	// Complete is set in the core once a store has been started on it.
	Complete bool `json:"complete,omitempty"`
	// Revision is that of the store.
	Revision uint64 `json:"revision,omitempty"`
	// Files are the small files of the data folder, by their path in it.
	Files map[string][]byte `json:"files,omitempty"`
	// Entries are resources, as durable stores keep them.
	Entries []entry `json:"entries,omitempty"`
}

// entry is one resource. In the log, Revision is that of its last change, and it has no Value if it was deleted.
type entry struct {
	Key      []byte `json:"k"`
	Value    []byte `json:"v,omitempty"`
	Revision uint64 `json:"r,omitempty"`
}

// encoded returns the entry of a resource.
func encoded(r *resources.Resource) (entry, error) {
	key := store.EncodeKey(r.Key)
	value, err := store.EncodeValue(key, r)
	return entry{Key: key, Value: value}, err
}

// shardOf returns the shard of a resource.
func shardOf(k resources.Key) int {
	h := fnv.New32a()
	_, _ = h.Write(store.EncodeKey(k))
	return int(h.Sum32() % storeShards)
}

// pack returns the compressed form of a content.
func (c *content) pack() ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(z).Encode(c); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// unpack is the reverse of pack.
func unpack(raw []byte) (*content, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := &content{}
	if err := json.NewDecoder(io.LimitReader(z, maxOpened)).Decode(c); err != nil {
		return nil, err
	}
	return c, nil
}

// maxFiles bounds the small files together, in bytes.
const maxFiles = 512 << 10

// apart reports whether a path in the data folder is not among the small files: it is kept in another way, belongs to
// one machine, or is only a saving.
func apart(path, storeFile string) bool {
	top, _, _ := strings.Cut(path, "/")
	return strings.HasPrefix(top, ".") || strings.HasPrefix(top, filepath.Base(storeFile)) || top == holdingsFile ||
		top == "audit" || top == "known" || top == "secrets.key" || top == "place" || top == waitingDir || top == ofFileSystem
}

// ofFileSystem is a folder that only root reads, in a data folder that is a file system of its own.
const ofFileSystem = "lost+found"

// readFiles reads the small files of a data folder.
func readFiles(dir, storeFile string) (map[string][]byte, error) {
	out, total := map[string][]byte{}, 0
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case apart(name, storeFile) && d.IsDir():
			return fs.SkipDir
		case apart(name, storeFile) || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		raw, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		if total += len(raw); total > maxFiles {
			return fmt.Errorf("%s: the files beside the store have more than %d bytes, which is what replicas share", path, maxFiles)
		}
		out[name] = raw
		return nil
	})
	return out, err
}

// clearFolder removes what another lead left in a data folder. The audit log stays: it tells what this replica did.
func clearFolder(dir string) error {
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, d := range all {
		switch d.Name() {
		case "audit", "secrets.key", "place", waitingDir, ofFileSystem:
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, d.Name())); err != nil {
			return err
		}
	}
	return nil
}

// writeFiles writes the small files into a data folder.
func writeFiles(dir string, files map[string][]byte) error {
	for name, raw := range files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("a Secret names the file %q, which is not in the data folder", name)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}
