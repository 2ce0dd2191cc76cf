package tokens

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"
)

const (
	// maxIDs bounds the remembered revoked ids, and separately the used ids.
	maxIDs = 20_000
	// afterExpiry is how long an id is remembered after its token has expired by the clock of the server that forgets it.
	// Replicas share the ids: one whose clock is ahead must not bring back a token that is not over on the others.
	afterExpiry = 24 * time.Hour
)

// ids maps ids of tokens to the time until which they are remembered, when the tokens expire.
type ids map[string]time.Time

func decodeIDs(plain []byte) (ids, error) {
	out := ids{}
	if err := json.Unmarshal(plain, &out); err != nil {
		return nil, fmt.Errorf("%w: the stored IDs of tokens cannot be read", ErrKey)
	}
	return out, nil
}

// has reports whether id is remembered. It ignores the time, because forgetting too early is the dangerous mistake.
func (s ids) has(id string) bool {
	_, ok := s[id]
	return ok
}

// add adds an id and drops expired ones by the clock for forgetting.
func (s ids) add(id string, until, now time.Time) error {
	maps.DeleteFunc(s, func(_ string, end time.Time) bool { return end.Add(afterExpiry).Before(now) })
	if old, ok := s[id]; ok && old.After(until) {
		return nil
	}
	if !s.has(id) && len(s) >= maxIDs {
		return fmt.Errorf("%w: %d of at most %d", ErrFull, len(s), maxIDs)
	}
	s[id] = until.UTC()
	return nil
}
