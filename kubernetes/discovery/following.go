package discovery

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
)

// following is one followed kind. It implements apiserver.Sink and apiserver.Trimmer.
type following struct {
	c    *Controller
	kind apiserver.Kind
	// sees receives an object, or nil for a deleted one, with c.mu held.
	sees func(apiserver.Name, *apiserver.Object) error
	// known returns the existing objects, with c.mu held.
	known func() []apiserver.Name
	// listed is set once there was a complete list; guarded by c.mu. failed is set while the API server cannot be
	// followed.
	listed, failed bool
	// since is when following last failed; guarded by c.mu.
	since time.Time
	// held are the objects that a list left out but that are kept, by namespace; guarded by c.mu.
	held map[string]map[string]bool
}

// handler returns a function that reads an object and hands it on, nil for a deleted one.
func handler[T any](read func(*apiserver.Object) (*T, error), saw func(apiserver.Name, *T)) func(apiserver.Name, *apiserver.Object) error {
	return func(id apiserver.Name, o *apiserver.Object) error {
		if o == nil {
			saw(id, nil)
			return nil
		}
		read, err := read(o)
		if err == nil {
			saw(id, read)
		}
		return err
	}
}

// Trim implements apiserver.Trimmer: of most pods it keeps a tenth.
func (f *following) Trim(o *apiserver.Object) {
	var kept any
	var err error
	switch f.kind.Plural {
	case "pods":
		kept, err = readPod(o)
	case "services":
		kept, err = readService(o)
	case "nodes":
		kept, err = readNode(o)
	default:
		kept, err = readNamespace(o)
	}
	if err != nil {
		return // Replace reports it
	}
	if raw, err := json.Marshal(kept); err == nil {
		o.Raw = raw
	}
	o.Meta = apiserver.Metadata{Name: o.Meta.Name, Namespace: o.Meta.Namespace, UID: o.Meta.UID}
}

// Replace implements apiserver.Sink.
func (f *following) Replace(all []*apiserver.Object) {
	d := f.c
	d.mu.Lock()
	defer d.mu.Unlock()
	there := make(map[apiserver.Name]bool, len(all))
	for _, o := range all {
		there[o.ID()] = true
		f.see(o.ID(), o)
	}
	var missing []apiserver.Name
	known := f.known()
	for _, id := range known {
		if !there[id] {
			missing = append(missing, id)
		}
	}
	if left := len(known) - len(missing); mass(len(missing), left) {
		f.holdLocked(missing, left)
		missing = nil
	}
	for _, id := range missing {
		f.see(id, nil)
	}
	f.resumed()
	f.listed, d.compare = true, true
	d.wake()
}

// see processes an object. An unreadable one keeps its previous state.
func (f *following) see(id apiserver.Name, o *apiserver.Object) {
	f.unholdLocked(id)
	if err := f.sees(id, o); err != nil {
		f.c.Log.Warn("cannot read an object of the cluster; its previous version stays", "kind", f.kind.Name, "error", err)
	}
}

// Changed implements apiserver.Sink.
func (f *following) Changed(o *apiserver.Object) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.see(o.ID(), o)
}

// Deleted implements apiserver.Sink.
func (f *following) Deleted(o *apiserver.Object) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.see(o.ID(), nil)
}

// Failed implements apiserver.Sink. The known state stays.
func (f *following) Failed(err error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if !f.failed {
		f.c.Log.Warn("cannot follow pods and Services of the cluster; the mesh continues with their last state", "kind",
			f.kind.Name, "error", err)
	}
	if !f.failed && f.listed {
		f.since = time.Now()
	}
	f.failed = true
}

// Resumed implements apiserver.Sink.
func (f *following) Resumed() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.resumed()
}

func (f *following) resumed() {
	if f.failed {
		f.c.Log.Info("pods and Services of the cluster are followed again", "kind", f.kind.Name)
	}
	f.failed = false
}

func (d *Controller) sawNode(id apiserver.Name, n *Node) {
	old := d.nodes[id.Name]
	if n == nil {
		delete(d.nodes, id.Name)
	} else {
		d.nodes[id.Name] = n
	}
	if reflect.DeepEqual(old, n) {
		return
	}
	for _, s := range d.spaces {
		for name, p := range s.pods {
			if p.Spec.NodeName == id.Name {
				s.changed[name] = true
				s.answers(p)
				d.wake()
			}
		}
	}
}

func (d *Controller) sawNamespace(id apiserver.Name, n *Namespace) {
	s := d.spaceLocked(id.Name)
	if !reflect.DeepEqual(s.namespace, n) {
		s.namespace, s.servicesChanged = n, true
		d.wake()
	}
}

func (d *Controller) sawService(id apiserver.Name, one *Service) {
	s := d.spaceLocked(id.Namespace)
	old := s.services[id.Name]
	if reflect.DeepEqual(old, one) {
		return
	}
	if one == nil {
		delete(s.services, id.Name)
		of := object{kind: "Service", namespace: id.Namespace, name: id.Name}
		delete(d.reported, of)
		delete(d.reasons, of)
	} else {
		s.services[id.Name] = one
	}
	s.servicesChanged = true
	if id.Namespace == d.Home.OperatorsNamespace() {
		d.rename()
	}
	for name, p := range s.pods {
		if old != nil && old.selects(p) || one != nil && one.selects(p) {
			s.changed[name] = true
		}
	}
	d.wake()
}

func (d *Controller) sawPod(id apiserver.Name, p *Pod) {
	s := d.spaceLocked(id.Namespace)
	old := s.pods[id.Name]
	if p != nil && !p.hasProxy() {
		p = nil // whatever it is, it is not in the mesh
	}
	if reflect.DeepEqual(old, p) {
		return
	}
	if p == nil {
		delete(s.pods, id.Name)
		delete(s.crowded, id.Name)
	} else {
		s.pods[id.Name] = p
	}
	s.changed[id.Name] = true
	d.partLocked(s, id.Name, old, p)
	d.awaitLocked(id, p)
	if old == nil && p.isIngress() {
		d.rename()
	}
	if !sameBearer(old, p) {
		s.answers(old)
		s.answers(p)
	}
	if !samePlace(old, p) && (!s.namespace.asksForProxies() || s.headless(old) || s.headless(p)) {
		s.servicesChanged = true
	}
	d.wake()
}

// samePlace reports whether two states of a pod are the same to MeshServices.
func samePlace(a, b *Pod) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.proxy() == nil || b.proxy() == nil {
		return a.proxy() == b.proxy() // ingresses are behind no MeshService
	}
	return a.present() == b.present() && a.proxy().mesh == b.proxy().mesh && reflect.DeepEqual(a.addresses(), b.addresses()) &&
		reflect.DeepEqual(a.Metadata.Labels, b.Metadata.Labels) && reflect.DeepEqual(a.Spec.Containers, b.Spec.Containers)
}

// headless reports whether a headless Service is in front of a pod.
func (s *space) headless(p *Pod) bool {
	for _, one := range s.services {
		if p != nil && one.headless() && one.selects(p) {
			return true
		}
	}
	return false
}

func (d *Controller) knownNodes() (out []apiserver.Name) {
	for name := range d.nodes {
		out = append(out, apiserver.Name{Name: name})
	}
	return out
}

func (d *Controller) knownNamespaces() (out []apiserver.Name) {
	for name, s := range d.spaces {
		if s.namespace != nil {
			out = append(out, apiserver.Name{Name: name})
		}
	}
	return out
}

func (d *Controller) knownServices() (out []apiserver.Name) {
	for namespace, s := range d.spaces {
		for name := range s.services {
			out = append(out, apiserver.Name{Namespace: namespace, Name: name})
		}
	}
	return out
}

func (d *Controller) knownPods() (out []apiserver.Name) {
	for namespace, s := range d.spaces {
		for name := range s.pods {
			out = append(out, apiserver.Name{Namespace: namespace, Name: name})
		}
	}
	return out
}
