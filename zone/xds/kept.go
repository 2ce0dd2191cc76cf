package xds

import (
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/holdings"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// Kinds of what is kept of a Dataplane's proxies.
const (
	keptIdentity = "svid"
	// keptProxyless is the identity of its application, where that is a proxy by itself.
	keptProxyless = "svid-proxyless"
	keptMarks     = "marks"
)

func keptID(kind string, dp resources.Key) holdings.ID {
	return holdings.ID{Kind: kind, Mesh: dp.Mesh, Namespace: dp.Namespace, Name: dp.Name}
}

func (p *proxy) keptID() holdings.ID {
	if p.proxyless {
		return keptID(keptProxyless, p.key)
	}
	return keptID(keptIdentity, p.key)
}

// What came of kept identities, in metrics.
const (
	keptUsed       = "used"
	keptUnreadable = "unreadable"
	keptOther      = "other-identity"
	keptAuthority  = "other-authority"
	keptDue        = "due"
	keptFailed     = "failed"
)

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return keptUsed
	case errors.Is(err, identity.ErrUnreadable):
		return keptUnreadable
	case errors.Is(err, identity.ErrOtherIdentity):
		return keptOther
	case errors.Is(err, identity.ErrOtherAuthority):
		return keptAuthority
	case errors.Is(err, identity.ErrDue):
		return keptDue
	}
	return keptFailed
}

// obtainLocked returns the identity that was kept for the proxy, so that one that comes back is sent what it has; otherwise a new one. p.mu
// is held.
func (x *Proxies) obtainLocked(p *proxy) (svid *identity.SVID, resumed bool, err error) {
	id := p.keptID()
	if p.svid == nil {
		if kept, there := x.cfg.Holdings.Get(id); there {
			svid, err = x.cfg.Authorities.Resume(p.dataplane, kept)
			x.metrics.kept.WithLabelValues(outcomeOf(err)).Inc()
			if err == nil {
				return svid, true, nil
			}
			x.cfg.Log.Info("the kept identity of a proxy is not used: it is issued a new one", "mesh", p.key.Mesh, "name", p.key.Name, "reason", err)
		}
	}
	if svid, err = x.cfg.Authorities.Renew(p.dataplane, p.svid); err != nil {
		return nil, false, err
	}
	x.metrics.issued.Inc()
	x.cfg.Holdings.Put(id, svid.Kept(), svid.Leaf.NotAfter)
	return svid, false, nil
}

// awaitFor is how long after a start proxies may take to come back: Envoy waits no longer between two attempts.
const awaitFor = 30 * time.Second

// await notes whose identities were kept: who was connected before the start, give or take some that have left since.
func (x *Proxies) await() {
	x.awaited, x.awaitUntil = map[proxyID]struct{}{}, x.cfg.Now().Add(awaitFor)
	for _, id := range x.cfg.Holdings.IDs() {
		if id.Kind == keptIdentity || id.Kind == keptProxyless {
			dp := resources.Key{Type: resources.TypeDataplane, Mesh: id.Mesh, Namespace: id.Namespace, Name: id.Name}
			x.awaited[proxyID{dp, id.Kind == keptProxyless}] = struct{}{}
		}
	}
}

// Awaited counts the proxies of a mesh that seem to have been connected before the start and are not back: they know what they were told
// then. It is zero from half a minute after the start.
func (x *Proxies) Awaited(mesh string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.cfg.Now().Before(x.awaitUntil) {
		x.awaited = nil
	}
	n := 0
	for id := range x.awaited {
		if id.Mesh == mesh {
			n++
		}
	}
	return n
}

// keptMark is the mark of an inbound that has another than that of its filter, and the version of that.
type keptMark struct {
	Filter string `json:"filter"`
	Mark   string `json:"mark"`
}

// accessesLocked are those that a Dataplane's proxy was told last, before a restart too.
func (x *Proxies) accessesLocked(key resources.Key) accesses {
	if known, there := x.accesses[key]; there {
		return known
	}
	kept, there := x.cfg.Holdings.Get(keptID(keptMarks, key))
	marks := map[string]keptMark{}
	if !there || json.Unmarshal(kept, &marks) != nil {
		return nil
	}
	out := accesses{}
	for section, one := range marks {
		out[section] = access{filter: one.Filter, mark: one.Mark, restored: true}
	}
	return out
}

// keepAccessesLocked remembers what a Dataplane's proxy is told.
func (x *Proxies) keepAccessesLocked(key resources.Key, now accesses) {
	before := x.accessesLocked(key).marks()
	x.accesses[key] = now
	marks := now.marks()
	switch {
	case maps.Equal(marks, before):
	case len(marks) == 0:
		x.cfg.Holdings.Delete(keptID(keptMarks, key))
	default:
		kept, err := json.Marshal(marks)
		if err == nil {
			x.cfg.Holdings.Put(keptID(keptMarks, key), kept, time.Time{})
		}
	}
}

// marks are those that a restart would not come to by itself.
func (a accesses) marks() map[string]keptMark {
	out := map[string]keptMark{}
	for section, one := range a {
		if one.mark != one.filter {
			out[section] = keptMark{Filter: one.filter, Mark: one.mark}
		}
	}
	return out
}

// dropKeptLocked forgets all that is kept of a Dataplane that was deleted: another one of its name starts anew.
func (x *Proxies) dropKeptLocked(dp resources.Key) {
	delete(x.awaited, proxyID{dp, false})
	delete(x.awaited, proxyID{dp, true})
	x.cfg.Holdings.Delete(keptID(keptIdentity, dp), keptID(keptProxyless, dp), keptID(keptMarks, dp))
}

// retainKept forgets what is kept of Dataplanes that a store no longer has.
func (x *Proxies) retainKept() {
	snap := x.cfg.Store.Snapshot()
	x.cfg.Holdings.Retain(func(id holdings.ID) bool {
		return snap.Get(resources.Key{Type: resources.TypeDataplane, Mesh: id.Mesh, Namespace: id.Namespace, Name: id.Name}) != nil
	})
}
