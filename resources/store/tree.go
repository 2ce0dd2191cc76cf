package store

import (
	"strings"
	"unsafe"

	"github.com/tidwall/btree"
)

// tree holds values by key, in the order of the keys. A copy of a tree that is sealed before it changes again stays as it
// is: both share the nodes that do not change. The zero value is empty.
type tree[V any] struct{ all btree.Map[string, V] }

// degree bounds a node to 15 keys: a change copies one node of each level, of which there are more if nodes are smaller.
const degree = 8

// seal leaves all copies made so far as they are, whatever changes in t from now on.
func (t *tree[V]) seal() { t.all = *t.all.Copy() }

// get returns the value of a key.
func (t *tree[V]) get(key []byte) (V, bool) { return t.all.Get(borrowed(key)) }

// each yields the values of the keys that begin with a prefix, in the order of the keys.
func (t *tree[V]) each(prefix []byte, yield func(V) bool) {
	begins := borrowed(prefix)
	t.all.Ascend(begins, func(key string, v V) bool { return strings.HasPrefix(key, begins) && yield(v) })
}

// put sets the value of a key.
func (t *tree[V]) put(key []byte, v V) {
	if t.all.Len() == 0 {
		t.all = *btree.NewMap[string, V](degree)
	}
	t.all.Set(string(key), v)
}

// remove removes a key, if it is there.
func (t *tree[V]) remove(key []byte) {
	if _, there := t.get(key); there { // otherwise the library copies the way to where it would be
		t.all.Delete(borrowed(key))
	}
}

// borrowed returns a key as text without a copy, for a look that keeps nothing of it.
func borrowed(key []byte) string {
	return unsafe.String(unsafe.SliceData(key), len(key)) //nolint:gosec // nobody changes the key meanwhile
}
