package discovery

import (
	"context"
	"errors"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
)

const (
	// minMass is the number of objects up to which a list is believed whatever it leaves out.
	minMass = 10
	// confirmTime is the wait between two rounds in which the API server is asked about objects that its list left out,
	// and confirmMost limits the objects of a kind in one round.
	confirmTime, confirmMost = time.Second, 20
	// systemNamespace is in every cluster. A cluster without it has lost everything, or is the wrong one.
	systemNamespace = "kube-system"
)

var errNoCluster = errors.New("namespace kube-system not found: the API server has lost its data, or belongs to another cluster")

// mass reports whether a list leaves out too much to be believed: more than there is. After an unseen rollout of all
// pods, a list leaves out all old ones but has as many new ones.
func mass(missing, there int) bool { return missing > minMass && missing > there }

// holdLocked keeps the objects that a list left out, until the API server confirms that each is gone.
func (f *following) holdLocked(missing []apiserver.Name, there int) {
	f.c.Log.Error("a list of the Kubernetes API server omits most known objects; they stay in the mesh until the server confirms that each is gone",
		"kind", f.kind.Name, "missing", len(missing), "there", there)
	for _, id := range missing {
		if f.held[id.Namespace] == nil {
			f.held[id.Namespace] = map[string]bool{}
		}
		f.held[id.Namespace][id.Name] = true
	}
	select {
	case f.c.doubts <- struct{}{}:
	default:
	}
}

// unholdLocked stops holding an object. Resources kept meanwhile are checked again, because nothing else reports those
// from before a restart, and Services deleted while pods of their namespace were held.
func (f *following) unholdLocked(id apiserver.Name) {
	held := f.held[id.Namespace]
	if !held[id.Name] {
		return
	}
	delete(held, id.Name)
	if len(held) == 0 {
		delete(f.held, id.Namespace)
	}
	switch d := f.c; f {
	case d.pods:
		s := d.spaceLocked(id.Namespace)
		s.changed[id.Name] = true
		s.servicesChanged = s.servicesChanged || len(held) == 0
	case d.services:
		d.spaceLocked(id.Namespace).servicesChanged = true
	case d.namespaces:
		d.spaceLocked(id.Name).servicesChanged = true
	}
	f.c.wake()
}

// some returns some of the held objects.
func (f *following) some() (out []apiserver.Name) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	for namespace, names := range f.held {
		for name := range names {
			if len(out) == confirmMost {
				return out
			}
			out = append(out, apiserver.Name{Namespace: namespace, Name: name})
		}
	}
	return out
}

// confirm asks for held objects, one by one, until ctx ends. It does nothing while nothing is held.
func (d *Controller) confirm(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.doubts:
		}
		logged := ""
		for more := true; more; {
			more = false
			err := d.isCluster(ctx)
			for _, f := range d.kinds {
				some := f.some()
				more = more || len(some) > 0
				for _, id := range some {
					if err == nil {
						err = f.ask(ctx, id)
					}
				}
			}
			if err != nil && ctx.Err() == nil && err.Error() != logged {
				logged = err.Error()
				d.Log.Warn("objects that a list has omitted stay in the mesh", "error", err)
			}
			timer := time.NewTimer(confirmTime)
			select {
			case <-ctx.Done():
				timer.Stop()
				return nil
			case <-timer.C:
			}
		}
	}
}

// isCluster reports why the API server does not speak for the cluster.
func (d *Controller) isCluster(ctx context.Context) error {
	_, err := d.Client.Get(ctx, core("namespaces", "Namespace", false), apiserver.Name{Name: systemNamespace})
	if apiserver.IsNotFound(err) {
		return errNoCluster
	}
	return err
}

// ask requests one held object, and processes it as it is, or as gone.
func (f *following) ask(ctx context.Context, id apiserver.Name) error {
	o, err := f.c.Client.Get(ctx, f.kind, id)
	if err != nil && !apiserver.IsNotFound(err) {
		return err
	}
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.see(id, o) // nil if it is gone
	return nil
}

// keeps reports whether a resource stays although no known object of the cluster matches it.
func (d *Controller) keeps(r *resources.Resource) bool {
	if r.Type != resources.TypeMeshService {
		return d.pods.held[d.namespaceOf(r)][r.Name]
	}
	return len(d.pods.held[r.Namespace]) > 0 || d.services.held[r.Namespace][r.Labels[resources.LabelServiceName]] ||
		d.namespaces.held[""][r.Namespace]
}

// leftOutLocked holds store entries of objects that are in no list, if there are too many, and reports whether there
// are.
func (f *following) leftOutLocked(missing []apiserver.Name) bool {
	there := len(f.known())
	if !mass(len(missing), there) {
		return false
	}
	f.holdLocked(missing, there)
	return true
}
