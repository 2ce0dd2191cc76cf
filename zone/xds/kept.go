package xds

import (
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/checkpoint"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// Kinds of data that the server keeps of a Dataplane's proxies.
const (
	keptIdentity = "svid"
	// keptProxyless is the identity of a proxyless application.
	keptProxyless = "svid-proxyless"
	keptMarks     = "marks"
)

func keptID(kind string, dp resources.Key) checkpoint.ID {
	return checkpoint.ID{Kind: kind, Mesh: dp.Mesh, Namespace: dp.Namespace, Name: dp.Name}
}

func (p *proxy) keptID() checkpoint.ID {
	if p.proxyless {
		return keptID(keptProxyless, p.key)
	}
	return keptID(keptIdentity, p.key)
}

// Results of kept identities, in metrics.
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

// obtainLocked returns the identity that was kept for the proxy, so that a returning proxy gets its previous one;
// otherwise a new one. p.mu is held.
func (x *Proxies) obtainLocked(p *proxy) (svid *identity.SVID, resumed bool, err error) {
	id := p.keptID()
	if p.svid == nil {
		if kept, there := x.cfg.Checkpoint.Get(id); there {
			svid, err = x.cfg.Authorities.Resume(p.dataplane, kept)
			x.metrics.kept.WithLabelValues(outcomeOf(err)).Inc()
			if err == nil {
				return svid, true, nil
			}
			x.cfg.Log.Info("issued a new identity to a proxy: the stored one cannot be used", "mesh", p.key.Mesh,
				"name", p.key.Name, "reason", err)
		}
	}
	if svid, err = x.cfg.Authorities.Renew(p.dataplane, p.svid); err != nil {
		return nil, false, err
	}
	x.metrics.issued.Inc()
	x.cfg.Checkpoint.Put(id, svid.Kept(), svid.Leaf.NotAfter)
	return svid, false, nil
}

// awaitFor is how long after a start proxies may take to reconnect. It is Envoy's longest backoff.
const awaitFor = 30 * time.Second

// await notes the proxies whose identities were kept: those connected before the start, and possibly a few that have
// left since.
func (x *Proxies) await() {
	x.awaited, x.awaitUntil = map[proxyID]struct{}{}, x.cfg.Now().Add(awaitFor)
	for _, id := range x.cfg.Checkpoint.IDs() {
		if id.Kind == keptIdentity || id.Kind == keptProxyless {
			dp := resources.Key{Type: resources.TypeDataplane, Mesh: id.Mesh, Namespace: id.Namespace, Name: id.Name}
			x.awaited[proxyID{dp, id.Kind == keptProxyless}] = struct{}{}
		}
	}
}

// Awaited counts the proxies of a mesh that were probably connected before the start and have not reconnected. They
// have the configuration of that time. It is zero from half a minute after the start.
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

// keptMark is the mark of an inbound that differs from its filter's version, with that version.
type keptMark struct {
	Filter string `json:"filter"`
	Mark   string `json:"mark"`
}

// accessesLocked returns the accesses last sent to a Dataplane's proxy, including before a restart.
func (x *Proxies) accessesLocked(key resources.Key) accesses {
	if known, there := x.accesses[key]; there {
		return known
	}
	kept, there := x.cfg.Checkpoint.Get(keptID(keptMarks, key))
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

// keepAccessesLocked stores the accesses sent to a Dataplane's proxy.
func (x *Proxies) keepAccessesLocked(key resources.Key, now accesses) {
	before := x.accessesLocked(key).marks()
	x.accesses[key] = now
	marks := now.marks()
	switch {
	case maps.Equal(marks, before):
	case len(marks) == 0:
		x.cfg.Checkpoint.Delete(keptID(keptMarks, key))
	default:
		kept, err := json.Marshal(marks)
		if err == nil {
			x.cfg.Checkpoint.Put(keptID(keptMarks, key), kept, time.Time{})
		}
	}
}

// marks returns the marks that a restart would not reproduce.
func (a accesses) marks() map[string]keptMark {
	out := map[string]keptMark{}
	for section, one := range a {
		if one.mark != one.filter {
			out[section] = keptMark{Filter: one.filter, Mark: one.mark}
		}
	}
	return out
}

// dropKeptLocked drops everything kept of a deleted Dataplane, so that a new Dataplane of the same name starts afresh.
func (x *Proxies) dropKeptLocked(dp resources.Key) {
	delete(x.awaited, proxyID{dp, false})
	delete(x.awaited, proxyID{dp, true})
	x.cfg.Checkpoint.Delete(keptID(keptIdentity, dp), keptID(keptProxyless, dp), keptID(keptMarks, dp))
}

// retainKept drops data of Dataplanes that the store no longer has.
func (x *Proxies) retainKept() {
	snap := x.cfg.Store.Snapshot()
	x.cfg.Checkpoint.Retain(func(id checkpoint.ID) bool {
		return snap.Get(resources.Key{Type: resources.TypeDataplane, Mesh: id.Mesh, Namespace: id.Namespace,
			Name: id.Name}) != nil
	})
}
