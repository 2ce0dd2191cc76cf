package discovery

import (
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// partLocked keeps the ZoneIngress of a pod that begins to be deleted, until load balancers send it no new connection. Then
// it goes, and other zones leave the connections that they have. A pod that is deleted again, to be gone sooner, has less
// time. p is nil for a pod that is gone.
func (d *Controller) partLocked(s *space, name string, old, p *Pod) {
	switch {
	case p == nil || p.over() || !p.leaving():
		delete(s.parting, name)
	case p.isIngress() && (old == nil || old.Metadata.DeletionTimestamp != p.Metadata.DeletionTimestamp):
		delete(s.parting, name)
		now := d.Now()
		if wait := p.handsOver(now); wait > 0 {
			s.parting[name] = now.Add(wait)
			time.AfterFunc(wait, func() {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.markLocked(resources.Key{Type: resources.TypeDataplane, Namespace: s.name, Name: name})
			})
		}
	}
}

// handsOver returns how long other zones may still use a pod that is being deleted: half of the time for which its proxy
// serves on. In the first half load balancers notice. The second half is for other zones to learn of it, and for the requests
// in progress.
func (p *Pod) handsOver(now time.Time) time.Duration {
	ends, err := time.Parse(time.RFC3339, p.Metadata.DeletionTimestamp)
	if err != nil {
		return 0
	}
	grace := time.Duration(p.Metadata.DeletionGracePeriodSeconds) * time.Second
	half := min(p.drains(), grace) / 2
	began := ends.Add(time.Second - grace) // the API server writes whole seconds
	return min(half, began.Add(half).Sub(now))
}

// drains returns for how long the containers of a pod run on when it is deleted.
func (p *Pod) drains() (most time.Duration) {
	for _, c := range p.Spec.Containers {
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Sleep != nil {
			most = max(most, time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second)
		}
	}
	return most
}
