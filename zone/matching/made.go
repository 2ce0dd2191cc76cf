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
