package store

import (
	"context"
	"sync/atomic"
)

// Memory is a Store without a disk: its contents end with the process. It is for live status and for tests.
type Memory struct {
	*View
	closed atomic.Bool
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store in memory with the default configuration.
func NewMemory() *Memory { return NewMemoryWith(ViewConfig{}) }

// NewMemoryWith returns an empty store in memory with the caller's window and clock.
func NewMemoryWith(config ViewConfig) *Memory {
	return &Memory{View: NewView(config)}
}

// Apply implements Store. It waits for earlier writers and never fails with ErrUnavailable.
func (m *Memory) Apply(ctx context.Context, b Batch) (*Commit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.closed.Load() {
		return nil, ErrClosed
	}
	t := m.Begin()
	defer t.Abort()
	commit, err := t.Apply(b)
	if err != nil {
		return nil, err
	}
	t.Commit()
	return commit, nil
}

// Close implements Store. It waits for the write in progress and refuses later ones.
func (m *Memory) Close() error {
	m.closed.Store(true)
	m.Begin().Abort()
	return nil
}
