package xds

import (
	"runtime"
	"sync"
	"weak"
)

// table keeps what was made of equal inputs, so that proxies share it, and one that needs it again does not make it
// again. It keeps nothing alive, so it holds only what some proxy has. A nil table keeps nothing.
type table[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]weak.Pointer[V] // guarded by mu
}

// get returns what was made of the key, or makes it. What is made must depend on the key alone, must not refer to the
// key's pointers from a place that those reach, and nobody may change it.
func (t *table[K, V]) get(key K, build func() (*V, error)) (*V, error) {
	if t == nil {
		return build()
	}
	t.mu.Lock()
	has := t.all[key].Value()
	t.mu.Unlock()
	if has != nil {
		return has, nil
	}
	v, err := build()
	if err != nil {
		return nil, err
	}
	return t.put(key, v), nil
}

// put keeps v, unless another one is there, and returns the one that is kept.
func (t *table[K, V]) put(key K, v *V) *V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if has := t.all[key].Value(); has != nil {
		return has
	}
	if t.all == nil {
		t.all = map[K]weak.Pointer[V]{}
	}
	t.all[key] = weak.Make(v)
	runtime.AddCleanup(v, t.forget, key)
	return v
}

// forget drops the entry of what nobody has any more.
func (t *table[K, V]) forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, there := t.all[key]; there && at.Value() == nil { // otherwise there is a new one
		delete(t.all, key)
	}
}

func (t *table[K, V]) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}
