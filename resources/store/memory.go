package store

import (
	"context"
	"sync/atomic"
)

// Memory is a Store without a disk: what it holds ends with the process. It is for live status and for tests.
type Memory struct {
	*Replica
	closed atomic.Bool
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store in memory with the default configuration.
func NewMemory() *Memory { return NewMemoryWith(ReplicaConfig{}) }

// NewMemoryWith is NewMemory with a window and a clock of the caller's choice.
func NewMemoryWith(config ReplicaConfig) *Memory {
	return &Memory{Replica: NewReplica(config)}
}

// Apply implements Store. It waits for writers before it, and never fails with ErrUnavailable.
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

// Close implements Store: it waits for the write under way, and refuses those that come later.
func (m *Memory) Close() error {
	m.closed.Store(true)
	m.Begin().Abort()
	return nil
}
