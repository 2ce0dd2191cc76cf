package accesslog

import (
	"container/list"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/causeway-mesh/causeway/messages"
	"github.com/causeway-mesh/causeway/resources"
)

// ErrRecord reports a Record that no zone sends.
var ErrRecord = errors.New("answers with what is not a report of its own proxies")

// ReadRecord reads a zone's Record. A zone is believed what it says of its own Dataplanes, and nothing else. Errors wrap
// ErrRecord.
func ReadRecord(body []byte, zone string, of Selection) (*Record, error) {
	if len(body) > maxRecord {
		return nil, fmt.Errorf("%w: %d bytes, the maximum is %d", ErrRecord, len(body), maxRecord)
	}
	if err := messages.CheckJSON(body, maxRecordValues, maxRecordDepth); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	r := &Record{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	for i := range r.Entries {
		if err := r.Entries[i].check(zone, &of); err != nil {
			return nil, fmt.Errorf("%w: entries[%d]: %w", ErrRecord, i, err)
		}
	}
	for i := range r.Policies {
		kri, err := resources.ParseKRI(r.Policies[i].KRI)
		if err != nil || of.Mesh != "" && kri.Mesh != of.Mesh || kri.Short != permissionShort {
			return nil, fmt.Errorf("%w: policies[%d] is not a MeshTrafficPermission that was asked for", ErrRecord, i)
		}
	}
	return r, nil
}

// permissionShort is the short name of MeshTrafficPermission in KRIs.
const permissionShort = "mtp"

// check returns an error for an entry that is not about an inbound of the zone, or was not asked for, and for one that no
// Journal keeps.
func (e *recorded) check(zone string, of *Selection) error {
	kri, err := resources.ParseKRI(e.Inbound)
	if err != nil || kri.Zone != zone || kri.Short != "dp" {
		return fmt.Errorf("the inbound is not of a Dataplane of zone %s", zone)
	}
	for _, text := range []string{e.Inbound, e.Client, e.Method, e.PathPrefix, e.Policy, e.ShadowPolicy} {
		if len(text) > maxText {
			return fmt.Errorf("a text is longer than %d bytes", maxText)
		}
	}
	if len(e.Paths) > maxPathsOfEntry || e.Method == "" && len(e.Paths) > 0 {
		return fmt.Errorf("more than %d paths", maxPathsOfEntry)
	}
	for _, p := range e.Paths {
		if len(p.Path) > maxPath {
			return fmt.Errorf("a path is longer than %d bytes", maxPath)
		}
	}
	if one := e.entry(0); !of.selects(one) {
		return errors.New("it was not asked for")
	}
	return nil
}

func (e *recorded) entry(turn uint64) *Entry {
	out := &Entry{Observation: Observation{Inbound: e.Inbound, Client: e.Client, Method: e.Method, PathPrefix: e.PathPrefix,
		Policy: e.Policy, Allowed: e.Allowed, ShadowPolicy: e.ShadowPolicy}, Count: e.Count, First: e.First, Last: e.Last,
		elsewhere: e.Elsewhere, turn: turn}
	for _, p := range e.Paths {
		if out.paths == nil {
			out.paths = make(map[string]pathSeen, len(e.Paths))
		}
		out.paths[p.Path] = pathSeen{p.Count, p.Last}
	}
	return out
}

// journal returns a Journal with the entries of a Record. Nothing may be added to it.
func (r *Record) journal() *Journal {
	j := NewJournal(r.Since, 0)
	j.dropped = r.Dropped
	for i := len(r.Entries) - 1; i >= 0; i-- {
		e := r.Entries[i].entry(uint64(len(r.Entries) - i))
		proxy := proxyOf(e.Inbound)
		if j.proxies[proxy] == nil {
			j.proxies[proxy] = list.New()
		}
		if twin := j.entries[e.Observation]; twin != nil {
			j.proxies[proxy].Remove(twin)
		}
		j.entries[e.Observation] = j.proxies[proxy].PushFront(e)
	}
	for _, p := range r.Policies {
		j.lost[p.KRI] = p.Lost
	}
	return j
}

// Pairs is Journal.Pairs for a Record.
func (r *Record) Pairs(method, path string) Pairs { return r.journal().Pairs(method, path) }
