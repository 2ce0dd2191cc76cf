package matching

import "sync"

// Made caches what callers derive from one rule alone, so that all inbounds of all proxies under the rule share it. It
// is safe for concurrent use. A nil Made caches nothing.
type Made struct{ values sync.Map }

// Once returns the result of the first call of derive for key, which must be comparable. The result is shared, so
// callers must not change it.
func (m *Made) Once(key any, derive func() any) any {
	if m == nil {
		return derive()
	}
	if v, ok := m.values.Load(key); ok {
		return v
	}
	v, _ := m.values.LoadOrStore(key, derive())
	return v
}

// Again is Once for what is worth keeping only if it is asked for again: most rules are for one inbound that never changes.
// It keeps the result from its second call on.
func (m *Made) Again(key any, derive func() any) any {
	if m == nil {
		return derive()
	}
	kept, asked := m.values.LoadOrStore(key, askedOnce{})
	if !asked {
		return derive()
	}
	if _, only := kept.(askedOnce); !only {
		return kept
	}
	kept = derive()
	m.values.Store(key, kept)
	return kept
}

// askedOnce stands for a result that was not kept.
type askedOnce struct{}
