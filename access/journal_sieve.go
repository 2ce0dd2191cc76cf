package access

import (
	"bytes"
	"encoding/json"
)

// sieve rules out lines of a journal before they are decoded: to decode a line costs many times what it costs to look for a
// text in it. The zero sieve rules out none.
type sieve struct {
	// name is a member of JSON that each line has that a query selects, as json.Marshal writes it.
	name []byte
}

// sieve returns what each line has that q selects. The name of a resource is the rarest.
func (q *LogQuery) sieve() sieve {
	if q.Name == "" {
		return sieve{}
	}
	name, err := json.Marshal(q.Name)
	if err != nil {
		return sieve{}
	}
	return sieve{append([]byte(`"name":`), name...)}
}

// damaged is a member of each line that tells of damage, which every query selects.
var damaged = []byte(`"event":"` + EventDamaged + `"`)

// rulesOut reports whether a query selects nothing that the line says. A line that cannot be read may have said anything.
func (s *sieve) rulesOut(line []byte) bool {
	return s.name != nil && !bytes.Contains(line, s.name) && !bytes.Contains(line, damaged) &&
		bytes.HasPrefix(line, []byte(`{"seq":`)) && json.Valid(line)
}
