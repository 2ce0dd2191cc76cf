package store

import "slices"

// tree holds values by key, in the order of the keys. It stores once what keys begin with in common. A copy of a tree that
// is sealed before it changes again stays as it is: both share the nodes that do not change. The zero value is empty.
type tree[V any] struct {
	root *node[V]
	// edit counts seals. Nodes of an earlier edit may be shared, and are copied before they change.
	edit uint64
}

// node is the end of a key, or where keys part.
type node[V any] struct {
	edit uint64
	// text is the part of the keys between the node above and this one. It is empty for the root only.
	text string
	// held means that a key ends here, with the value.
	held  bool
	value V
	below []edge[V] // ordered by first
}

// edge leads to the node whose text begins with first.
type edge[V any] struct {
	first byte
	to    *node[V]
}

// seal leaves all copies made so far as they are, whatever changes in t from now on.
func (t *tree[V]) seal() { t.edit++ }

// get returns the value of a key.
func (t *tree[V]) get(key []byte) (v V, ok bool) {
	n := t.root
	for n != nil && len(key) > 0 {
		if n, _ = n.step(key); n != nil && shared(n.text, key) < len(n.text) {
			return v, false
		} else if n != nil {
			key = key[len(n.text):]
		}
	}
	if n == nil {
		return v, false
	}
	return n.value, n.held
}

// each yields the values of the keys that begin with a prefix, in the order of the keys.
func (t *tree[V]) each(prefix []byte, yield func(V) bool) {
	n := t.root
	for n != nil && len(prefix) > 0 {
		if n, _ = n.step(prefix); n == nil {
			return
		}
		same := shared(n.text, prefix)
		if same < len(n.text) && same < len(prefix) {
			return
		}
		prefix = prefix[same:]
	}
	if n != nil {
		n.each(yield)
	}
}

func (n *node[V]) each(yield func(V) bool) bool {
	if n.held && !yield(n.value) {
		return false
	}
	for i := range n.below {
		if !n.below[i].to.each(yield) {
			return false
		}
	}
	return true
}

// put sets the value of a key.
func (t *tree[V]) put(key []byte, v V) {
	if t.root == nil {
		t.root = &node[V]{edit: t.edit}
	}
	t.root = t.with(t.root, key, v)
}

// remove removes a key, if it is there.
func (t *tree[V]) remove(key []byte) {
	if _, there := t.get(key); there {
		t.root = t.without(t.root, key)
	}
}

// with returns n with a value for what follows it in a key.
func (t *tree[V]) with(n *node[V], key []byte, v V) *node[V] {
	n = t.own(n)
	if len(key) == 0 {
		n.held, n.value = true, v
		return n
	}
	next, at := n.step(key)
	if next == nil {
		leaf := &node[V]{edit: t.edit, text: string(key), held: true, value: v}
		n.below = slices.Insert(n.below, at, edge[V]{key[0], leaf})
		return n
	}
	same := shared(next.text, key)
	if same < len(next.text) {
		next = t.part(next, same)
	}
	n.below[at].to = t.with(next, key[same:], v)
	return n
}

// part splits a node after so many bytes of its text.
func (t *tree[V]) part(n *node[V], after int) *node[V] {
	rest := t.own(n)
	above := &node[V]{edit: t.edit, text: rest.text[:after], below: []edge[V]{{rest.text[after], rest}}}
	rest.text = rest.text[after:]
	return above
}

// without returns n without what follows it in a key, which is there; nil if nothing is left of it.
func (t *tree[V]) without(n *node[V], key []byte) *node[V] {
	n = t.own(n)
	if len(key) == 0 {
		var none V
		n.held, n.value = false, none
	} else {
		next, at := n.step(key)
		if left := t.without(next, key[len(next.text):]); left != nil {
			n.below[at].to = left
		} else {
			n.below = slices.Delete(n.below, at, at+1)
		}
	}
	switch {
	case n.held || n.text == "" || len(n.below) > 1:
		return n
	case len(n.below) == 0:
		return nil
	}
	only := t.own(n.below[0].to)
	only.text = n.text + only.text
	return only
}

// own returns a node that this edit may change: n, or a copy if n may be shared.
func (t *tree[V]) own(n *node[V]) *node[V] {
	if n.edit == t.edit {
		return n
	}
	own := *n
	own.edit, own.below = t.edit, slices.Clone(n.below)
	return &own
}

// step returns the node below n whose text begins as the key does, which is not empty, and its position; or nil, and the
// position where it would be.
func (n *node[V]) step(key []byte) (*node[V], int) {
	low, high := 0, len(n.below)
	for low < high {
		if middle := (low + high) / 2; n.below[middle].first < key[0] {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < len(n.below) && n.below[low].first == key[0] {
		return n.below[low].to, low
	}
	return nil, low
}

// shared returns how many bytes a text and a key begin with in common.
func shared(text string, key []byte) int {
	n := min(len(text), len(key))
	for i := range n {
		if text[i] != key[i] {
			return i
		}
	}
	return n
}
