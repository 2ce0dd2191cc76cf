package kds

import (
	"strings"
	"testing"
)

// TestNonces checks that no two nonces are alike, of one sender or of two, and that each costs one allocation.
func TestNonces(t *testing.T) {
	seen := map[string]bool{}
	var one, other nonces
	for range 10_000 {
		for _, n := range []*nonces{&one, &other} {
			nonce := n.next()
			if len(nonce) != nonceLength || strings.Trim(nonce, nonceLetters) != "" || seen[nonce] {
				t.Fatalf("made %q, again: %t", nonce, seen[nonce])
			}
			seen[nonce] = true
		}
	}
	if n := testing.AllocsPerRun(100, func() { one.next() }); n != 1 {
		t.Errorf("a nonce makes %v objects, want 1", n)
	}
}
