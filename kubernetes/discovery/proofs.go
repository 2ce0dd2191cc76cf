package discovery

import (
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/resources"
)

const (
	// proofsEach is how often the pods are checked whose capture is not proven yet.
	proofsEach = time.Second
	// provenWithin is how long the kubelet may take to reach a proxy that has its configuration, and to say so, before that is
	// a problem. It asks each second.
	provenWithin = 10 * time.Second
)

// awaited is a pod whose proxy runs, and has not been reached at the port that proves capture.
type awaited struct {
	uid string
	// restarts counts those of the proxy.
	restarts  int
	dataplane resources.Key
	// since is when the proxy was first known to have its configuration; zero before. It can answer from then on, until it
	// restarts. late means that this is long ago.
	since time.Time
	late  bool
}

// awaitLocked notes whether the capture of a pod, nil for a deleted one, is to be proven.
func (d *Controller) awaitLocked(id apiserver.Name, p *Pod) {
	var proxy *containerStatus
	if p != nil {
		proxy = p.unproven()
	}
	if proxy == nil {
		delete(d.awaited, id)
		return
	}
	if is := d.awaited[id]; is == nil || is.uid != p.Metadata.UID || is.restarts != proxy.RestartCount {
		d.awaited[id] = &awaited{uid: p.Metadata.UID, restarts: proxy.RestartCount, dataplane: resources.Key{Type: resources.TypeDataplane,
			Mesh: p.record().Mesh, Namespace: id.Namespace, Name: id.Name}}
	}
}

// checkProofs checks all pods whose capture is not proven yet, and reports whether there is something new to report. It asks
// about proxies without holding mu, since the answer may take long.
func (d *Controller) checkProofs() (changed bool) {
	if d.Settled == nil {
		return false
	}
	d.mu.Lock()
	asked := make(map[apiserver.Name]resources.Key, len(d.awaited))
	for id, is := range d.awaited {
		asked[id] = is.dataplane
	}
	d.mu.Unlock()
	settled := make(map[apiserver.Name]bool, len(asked))
	for id, dataplane := range asked {
		settled[id] = d.Settled(dataplane)
	}
	now := d.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range asked {
		is := d.awaited[id]
		if is == nil {
			continue // it is proven, or gone
		}
		if is.since.IsZero() && settled[id] {
			is.since = now
		}
		if !is.late && !is.since.IsZero() && now.Sub(is.since) >= provenWithin {
			d.spaceLocked(id.Namespace).changed[id.Name] = true
			is.late, changed = true, true
		}
	}
	return changed
}

// unprovenLocked returns the problem of a pod whose capture is not proven although its proxy could answer.
func (d *Controller) unprovenLocked(p *Pod) []Problem {
	is := d.awaited[apiserver.Name{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name}]
	if is == nil || !is.late {
		return nil
	}
	return []Problem{problem(ReasonNotCaptured, "the application does not start, because it is not proven that the pod is captured: its proxy "+
		"has its configuration, and the kubelet has not reached it at port %d, from which only the rules of capture lead to it. If the "+
		"pod's network was made without the plugin causeway-cni: once its DaemonSet is ready on node %s, delete the pod, so that "+
		"another takes its place", injection.ProofPort, p.Spec.NodeName)}
}
