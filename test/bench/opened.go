package main

import (
	"hash/maphash"
	"sync"

	"github.com/causeway-mesh/causeway/kds/frame"
)

// responseFrame is the field of a response that has its resources compressed.
const responseFrame = 2000

// received is what a simulated zone reads of a message.
type received struct {
	response
	marks []int
}

// opener opens the frames of all simulated zones, each once: ten thousand zones on one machine would leave the server
// nothing if each opened its own.
type opener struct {
	seed maphash.Seed

	mu   sync.Mutex
	seen map[uint64]*received // by the hash of the frame; guarded by mu
}

// keptFrames is how many frames an opener knows at a time.
const keptFrames = 128

func newOpener() *opener { return &opener{seed: maphash.MakeSeed(), seen: map[uint64]*received{}} }

// read reads a message, whose resources may be in a frame.
func (o *opener) read(message []byte) (received, error) {
	compressed := field(message, responseFrame)
	if compressed == nil {
		return received{readResponse(message), marksIn(message)}, nil
	}
	key := maphash.Bytes(o.seed, compressed)
	o.mu.Lock()
	defer o.mu.Unlock()
	inside := o.seen[key]
	if inside == nil {
		content, err := frame.Open(compressed, 10<<20)
		if err != nil {
			return received{}, err
		}
		if len(o.seen) == keptFrames {
			clear(o.seen)
		}
		inside = &received{readResponse(content), marksIn(content)}
		o.seen[key] = inside
	}
	out := *inside
	out.nonce = string(field(message, responseNonce))
	return out, nil
}
