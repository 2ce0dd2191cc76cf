package xds

import (
	"runtime"
	"sync"
	"weak"
)

// table caches results of equal inputs, so that proxies share them. It keeps nothing alive: it holds only what some
// proxy uses. A nil table caches nothing.
type table[K comparable, V any] struct {
	mu  sync.Mutex
	all map[K]weak.Pointer[V] // guarded by mu
}

// get returns the cached result for the key, or builds it. The result must depend on the key alone, must not hold
// pointers of the key in a place that they reach, and must not be changed.
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

// put caches v, unless there is another entry, and returns the cached one.
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

// forget drops the entry of an unused result.
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
