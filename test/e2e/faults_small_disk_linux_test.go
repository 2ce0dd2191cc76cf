package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/api"
)

// smallDisk is a global on a small disk that others fill, and its acknowledged changes besides policies.
type smallDisk struct {
	*volume
	tokens, keys []string
	refused      int
}

// TestFaultsSmallDisk repeatedly fills the small disk of a global to the last block, and frees it, while policies are
// written, keys rotated, tokens issued and zones invited. Acknowledged changes hold, also after a kill: nothing is
// incomplete, and all continues with room.
func TestFaultsSmallDisk(t *testing.T) {
	t.Parallel()
	d := &disk{mesh: newMesh(t, "zone-1")}
	d.zone = d.zones["zone-1"]
	d.keeps()
	d.agrees()
	s := &smallDisk{volume: d.onVolume(d.global)}
	if s.volume == nil {
		t.Log("this machine lets nobody mount a file: TestFaultsRefusedOperations stands for every disk that refuses")
		return
	}
	rounds := 1
	if *faultsLong {
		rounds = 20
	}
	for range rounds {
		s.fills()
		s.holds()
		d.global.Kill()
		d.must(d.global.Start(t.Context()))
		s.holds()
		d.keeps()
		d.agrees()
	}
	t.Logf("acknowledged %d policies, %d tokens and %d keys; refused %d requests", d.acknowledged, len(s.tokens),
		len(s.keys), s.refused)
	d.noProblems(d.global.API.URL())
	d.noProblems(d.zone.API.URL())
}

// fills fills the disk while requests of all kinds are made, one after another, and frees it.
func (s *smallDisk) fills() {
	s.t.Helper()
	filler := filepath.Join(s.at, "filler")
	filled := make(chan struct{})
	go func() {
		defer close(filled)
		_ = os.WriteFile(filler, make([]byte, 80<<20), 0o600) // more than there is room for
	}()
	for full := false; !full; {
		s.work()
		select {
		case <-filled:
			full = true
		default:
		}
	}
	before := s.refused // what the store and the log have room for already is still taken
	s.eventually("the full disk to refuse something", func(context.Context) error {
		if s.work(); s.refused == before {
			return errors.New("it takes everything")
		}
		return nil
	})
	for range 2 {
		s.work()
	}
	s.must(os.Remove(filler))
	s.ready(s.global)
}

// work makes one request of each kind.
func (s *smallDisk) work() {
	ctx := s.t.Context()
	did := func(err error) bool {
		if err != nil {
			s.refused++
		}
		return err == nil
	}
	name := s.name(s.acknowledged)
	if did(s.put(s.global, name)) {
		s.acknowledged++
	}
	if raw, err := post(ctx, s.global, "/tokens/user", map[string]any{"name": "alice", "validFor": "1h"}); did(err) {
		s.tokens = append(s.tokens, string(raw))
	}
	if raw, err := post(ctx, s.global, "/_keys/token-signing/_rotate", nil); did(err) {
		var list api.SigningKeyList
		s.must(json.Unmarshal(raw, &list))
		s.keys = append(s.keys, list.New)
	}
	_, err := s.JoinString(ctx, s.global, "another")
	did(err)
}

// holds repeats the last write, which may have had no room, and checks what was acknowledged.
func (s *smallDisk) holds() {
	s.t.Helper()
	s.keepsLast()
	s.agrees()
	have, _, err := keysOf(s.t.Context(), s.global, "token-signing")
	s.must(err)
	for _, id := range s.keys {
		if !slices.Contains(have, id) {
			s.t.Errorf("key %q was acknowledged, and is not among %q", id, have)
		}
	}
	for _, token := range s.tokens {
		status, said, err := asked(s.t.Context(), s.global, http.MethodGet, "/who-am-i", token, nil)
		if err != nil || status != http.StatusOK {
			s.t.Errorf("a token that was issued is answered with %d %s (%v)", status, said, err)
		}
	}
}

// keepsLast repeats the last write, which may have been stored without an answer.
func (s *smallDisk) keepsLast() {
	s.t.Helper()
	s.eventually("the global to take a write",
		func(context.Context) error { return s.put(s.global, s.name(s.acknowledged)) })
	s.acknowledged++
}
