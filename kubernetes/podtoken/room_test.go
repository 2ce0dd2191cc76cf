package podtoken

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"
)

// Kept returns how many tokens are remembered.
func (c *Checker) Kept() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.known)
}

// TestRoomForTokens: when as many are remembered as may be, those give way whose answers are over, and if that is not
// enough others that have an answer. A question that is open stays.
func TestRoomForTokens(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key := func(i int) [sha256.Size]byte { return sha256.Sum256([]byte(fmt.Sprint(i))) }
	filled := func(until func(i int) time.Time) *Checker {
		c := New(nil, func() time.Time { return now })
		for i := range maxKnown {
			c.known[key(i)] = &answer{until: until(i)}
		}
		return c
	}
	over, good, open := now, now.Add(time.Second), time.Time{}

	c := filled(func(i int) time.Time { return []time.Time{over, good, open}[i*3/maxKnown] })
	if _, mine, err := c.answer(key(-1)); !mine || err != nil || len(c.known) < maxKnown*2/3 || len(c.known) > maxKnown*2/3+2 {
		t.Errorf("with answers that are over: %v, %d are left, want all others", err, len(c.known))
	}
	c = filled(func(i int) time.Time { return []time.Time{good, open}[i*2/maxKnown] })
	if _, mine, err := c.answer(key(-1)); !mine || err != nil || len(c.known) != maxKnown-spare+1 {
		t.Errorf("without: %v, %d are left, want %d", err, len(c.known), maxKnown-spare+1)
	}
	for i := maxKnown / 2; i < maxKnown; i++ {
		if c.known[key(i)] == nil {
			t.Fatal("an open question is gone")
		}
	}
	c = filled(func(int) time.Time { return open })
	if _, mine, err := c.answer(key(-1)); mine || !errors.Is(err, ErrUnknown) || len(c.known) != maxKnown {
		t.Errorf("with open questions only: %v", err)
	}
	if _, mine, err := c.answer(key(1)); mine || err != nil {
		t.Errorf("one that is asked about: %v", err)
	}
}
