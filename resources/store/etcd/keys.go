package etcd

import (
	"encoding/json"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// formatVersion is the layout that this code writes, and the newest that it reads.
const formatVersion = 1

// keys are the names below a prefix.
type keys struct{ prefix string }

// store and end bound the names of the store; those of the board come before.
func (k keys) store() string     { return k.prefix + "/f" }
func (k keys) end() string       { return clientv3.GetPrefixRangeEnd(k.prefix + "/") }
func (k keys) members() string   { return k.prefix + "/board/m/" }
func (k keys) notes() string     { return k.prefix + "/board/n/" }
func (k keys) format() string    { return k.prefix + "/format" }
func (k keys) head() string      { return k.prefix + "/head" }
func (k keys) writer() string    { return k.prefix + "/writer" }
func (k keys) resources() string { return k.prefix + "/r/" }

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
