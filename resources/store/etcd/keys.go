package etcd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// entryReader reads a resource as a layout has it: key, below that of the resources, and value.
type entryReader func(key, value []byte) (*resources.Resource, error)

// formats returns what reads each layout there was, the first that of format 1. The last one is written.
func formats() []entryReader { return []entryReader{store.DecodeEntry} }

// keys are the names below a prefix, in the layout of a format.
type keys struct {
	prefix  string
	version int
}

// store and end bound the names of the store; those of the board come before.
func (k keys) store() string   { return k.prefix + "/f" }
func (k keys) end() string     { return clientv3.GetPrefixRangeEnd(k.prefix + "/") }
func (k keys) members() string { return k.prefix + "/board/m/" }
func (k keys) notes() string   { return k.prefix + "/board/n/" }
func (k keys) format() string  { return k.prefix + "/format" }
func (k keys) head() string    { return k.prefix + "/head" }
func (k keys) writer() string  { return k.prefix + "/writer" }
func (k keys) program() string { return k.prefix + "/program" }

// resources has a name of its own in each format, so that those of the next can be written while those of the last are read.
func (k keys) resources() string {
	if k.version == 1 {
		return k.prefix + "/r/"
	}
	return k.prefix + "/r." + strconv.Itoa(k.version) + "/"
}

// of are the names in the layout of another format.
func (k keys) of(version int) keys { return keys{k.prefix, version} }

func (k keys) resource(key resources.Key) string { return k.resources() + string(store.EncodeKey(key)) }

// head is what the head key says of the last write.
type head struct {
	// Revision is the store's, of which the batches of the write got the last.
	Revision uint64 `json:"revision"`
	// Part counts from 1; a write is whole when Part is Parts.
	Part  int `json:"part"`
	Parts int `json:"parts"`
	// Writer is the server that wrote it.
	Writer string `json:"writer"`
	// After is the etcd revision of the write before, so that a view can tell that it has every one of them. Absent in the first
	// write, and in those of older programs.
	After int64 `json:"after,omitempty"`
	// Before is the digest of what the write before left in head: a store that was restored may have another write at After. Absent
	// where After is, and in those of older programs.
	Before string `json:"before,omitempty"`
}

// follows names the write before: where it is, and what it left in head.
func (h *head) follows(at int64, value string) {
	h.After, h.Before = at, ""
	if at > 0 {
		h.Before = digestOf(value)
	}
}

// isAfter reports whether the write before may have left value in head.
func (h head) isAfter(value string) bool { return h.Before == "" || h.Before == digestOf(value) }

func digestOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:8])
}

func (h head) whole() bool { return h.Part == h.Parts }

func (h head) encode() (string, error) {
	b, err := json.Marshal(h)
	return string(b), err
}

func decodeHead(value []byte) (head, error) {
	var h head
	if err := json.Unmarshal(value, &h); err != nil {
		return h, fmt.Errorf("head of the store: %w", err)
	}
	return h, nil
}
