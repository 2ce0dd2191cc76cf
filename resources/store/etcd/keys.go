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

// entryReader decodes a resource in a layout from its key, below that of the resources, and its value.
type entryReader func(key, value []byte) (*resources.Resource, error)

// formats returns the reader of each layout, the first of format 1. The last one is written.
func formats() []entryReader { return []entryReader{store.DecodeEntry} }

// keys returns the names below a prefix in the layout of a format.
type keys struct {
	prefix  string
	version int
}

// store and end bound the names of the store. Those of the shared state and of the chain sort before them.
func (k keys) store() string    { return k.prefix + "/f" }
func (k keys) end() string      { return clientv3.GetPrefixRangeEnd(k.prefix + "/") }
func (k keys) replicas() string { return k.prefix + "/board/m/" }
func (k keys) notes() string    { return k.prefix + "/board/n/" }
func (k keys) chain() string    { return k.prefix + "/chain/" }
func (k keys) format() string   { return k.prefix + "/format" }
func (k keys) head() string     { return k.prefix + "/head" }
func (k keys) writer() string   { return k.prefix + "/writer" }

// link is the part of the chain that begins with the write at an etcd revision.
func (k keys) link(at int64) string { return fmt.Sprintf("%s%016x", k.chain(), at) }

// unfinished marks contents of which only some parts were written by Replace.
func (k keys) unfinished() string { return k.prefix + "/unfinished" }
func (k keys) program() string    { return k.prefix + "/program" }

// resources has a different name in each format, so that the next format can be written while the previous one is read.
func (k keys) resources() string {
	if k.version == 1 {
		return k.prefix + "/r/"
	}
	return k.prefix + "/r." + strconv.Itoa(k.version) + "/"
}

// of returns the names in the layout of another format.
func (k keys) of(version int) keys { return keys{k.prefix, version} }

func (k keys) resource(key resources.Key) string { return k.resources() + string(store.EncodeKey(key)) }

// head is the value of the head key, about the last write.
type head struct {
	// Revision is that of the store, the revision of the last batch in the write.
	Revision uint64 `json:"revision"`
	// Part counts from 1. A write is complete if Part equals Parts.
	Part  int `json:"part"`
	Parts int `json:"parts"`
	// Writer is the server that wrote it.
	Writer string `json:"writer"`
	// After is the etcd revision of the previous write, so that a view can detect a missing one. Absent in the first
	// write and in those of older programs.
	After int64 `json:"after,omitempty"`
	// Replaced counts how often the contents were replaced as a whole (Replace): what followed the contents before may
	// not take the new ones for their continuation. Absent if they never were, and in the writes of older programs.
	Replaced int `json:"replaced,omitempty"`
	// Before is the digest of the head that the previous write left: a restored store may have another write at After.
	// Absent if After is, and in the writes of older programs.
	Before string `json:"before,omitempty"`
}

// follows records the previous write: its revision and the head that it left.
func (h *head) follows(at int64, value string) {
	h.After, h.Before = at, ""
	if at > 0 {
		h.Before = digestOf(value)
	}
}

// isAfter reports whether the previous write may have left value in head.
func (h head) isAfter(value string) bool { return h.Before == "" || h.Before == digestOf(value) }

// replacements returns how often the contents were replaced before they had this value of head; 0 if that is unknown.
func replacements(value string) int {
	h, err := decodeHead([]byte(value))
	if err != nil {
		return 0
	}
	return h.Replaced
}

// digestSize is the size of a digest in bytes.
const digestSize = 8

func digestOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:digestSize])
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
