package accesslog

import "time"

// Pair is an inbound, by its KRI, and the SPIFFE ID of a client that called it.
type Pair struct{ Inbound, Client string }

// Times counts what a client did at an inbound, with the time of the last occurrence.
type Times struct {
	// Allowed and Denied count requests, and connections on TCP. ShadowDenied counts those of Allowed that shadow denials
	// would deny if they were enforced.
	Allowed, Denied, ShadowDenied uint64
	Last                          time.Time
}

// Pairs holds the calls that a Journal distinguishes.
type Pairs struct {
	Times map[Pair]Times
	// Since is when the counting began, and Dropped counts calls that are no longer distinguished, for lack of room.
	Since   time.Time
	Dropped uint64
}

// Pairs returns who called which inbound. method and path, unless empty, select requests with exactly that method and
// path; this leaves out requests whose path is not kept.
func (j *Journal) Pairs(method, path string) Pairs {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := Pairs{Times: map[Pair]Times{}, Since: j.since, Dropped: j.dropped}
	for _, element := range j.entries {
		e, _ := element.Value.(*Entry)
		count, last := e.Count, e.Last
		if path != "" {
			count, last = e.paths[path].count, e.paths[path].last
		}
		if count == 0 || method != "" && e.Method != method {
			continue
		}
		t := out.Times[Pair{e.Inbound, e.Client}]
		switch {
		case !e.Allowed:
			t.Denied += count
		default:
			t.Allowed += count
			if e.ShadowPolicy != "" {
				t.ShadowDenied += count
			}
		}
		t.Last = later(t.Last, last)
		out.Times[Pair{e.Inbound, e.Client}] = t
	}
	return out
}
