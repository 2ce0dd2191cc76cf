package matching

import "sync"

// Made keeps what others derive from one rule alone, so that all inbounds of all proxies for which the rule holds share it. Safe for
// concurrent use; nil keeps nothing.
type Made struct{ values sync.Map }

// Once returns what derive returned when it was first called for key, which must be comparable. The result is shared: nobody may
// change it.
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
