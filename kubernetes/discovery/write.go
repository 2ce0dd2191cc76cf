package discovery

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// maxBatch limits the pods that are checked, and roughly the resources that are written, at once.
const maxBatch = 500

// pass is one pass over the changes.
type pass struct {
	d      *Controller
	snap   store.Snapshot
	meshes []string // the existing ones
	ops    []store.Op
	// removals come after ops, so that a replacement exists before its predecessor is gone.
	removals []store.Op
	marks    []resources.Key // the subjects of the pass: marked again if it is not stored
	// stored is how much of a limited kind namespaces have, where the pass needed it; added is what the pass adds.
	stored, added map[holding]int
	// who returns the identities of the Dataplanes of a mesh.
	who map[string]func(*resources.Resource) []string
	// authority is the zone's, see Config.
	authority []byte
}

// writeOnce writes one batch. more means that there is more to do at once.
func (d *Controller) writeOnce(ctx context.Context) (more bool, err error) {
	p := &pass{d: d, snap: d.Store.Snapshot(), stored: map[holding]int{}, added: map[holding]int{},
		who: map[string]func(*resources.Resource) []string{}}
	for mesh := range p.snap.List(store.Query{Type: resources.TypeMesh}) {
		p.meshes = append(p.meshes, mesh.Name)
	}
	if d.Authority != nil {
		p.authority = d.Authority()
	}
	d.mu.Lock()
	more = d.reconcileLocked(p)
	d.mu.Unlock()
	ops := slices.Concat(p.ops, p.removals)
	for begin := 0; begin < len(ops); begin += maxBatch {
		if err := d.apply(ctx, ops[begin:min(begin+maxBatch, len(ops))]); err != nil {
			d.mu.Lock()
			for _, key := range p.marks {
				d.markLocked(key)
			}
			d.mu.Unlock()
			return true, err
		}
	}
	return more, nil
}

// reconcileLocked fills a pass with the operations for what is marked, once every kind was listed: objects not seen yet
// are not gone.
func (d *Controller) reconcileLocked(p *pass) (more bool) {
	for _, f := range d.kinds {
		if !f.listed {
			return false
		}
	}
	if d.compare {
		d.compareLocked(p.snap)
	}
	for _, name := range slices.Sorted(maps.Keys(d.spaces)) {
		s := d.spaces[name]
		services := s.inOrder()
		switch {
		case s.servicesChanged, len(s.answered) > 0 && slices.ContainsFunc(services, (*Service).headless): // they share names
			p.services(s, services, nil)
		case len(s.answered) > 0:
			p.services(s, services, s.answered)
		}
		s.servicesChanged = false
		clear(s.answered)
		for _, pod := range slices.Sorted(maps.Keys(s.changed)) {
			if len(p.marks) >= maxBatch {
				return true
			}
			delete(s.changed, pod)
			p.pod(s, pod, services)
		}
		if s.namespace == nil && len(s.pods)+len(s.services) == 0 {
			delete(d.spaces, name)
		}
	}
	return false
}

// compareLocked marks the store's content: after a restart, nothing else reports deleted objects.
func (d *Controller) compareLocked(snap store.Snapshot) {
	d.compare = false
	var gone, without []apiserver.Name
	for _, t := range []resources.Type{resources.TypeDataplane, resources.TypeMeshService, resources.TypeZoneIngress} {
		for r := range snap.List(store.Query{Type: t,
			Labels: map[string]string{resources.LabelManagedBy: resources.ManagedByDiscovery}}) {
			if !d.Home.Discovered(r) {
				continue
			}
			s := d.spaceLocked(d.namespaceOf(r))
			if r.Mesh != "" {
				d.meshes[r.Mesh] = true
			}
			switch service := (apiserver.Name{Namespace: r.Namespace, Name: r.Labels[resources.LabelServiceName]}); {
			case t == resources.TypeMeshService && s.services[service.Name] == nil && !slices.Contains(without, service):
				without = append(without, service)
			case t != resources.TypeMeshService && s.pods[r.Name] == nil:
				gone = append(gone, apiserver.Name{Namespace: s.name, Name: r.Name})
			}
			s.servicesChanged = s.servicesChanged || t == resources.TypeMeshService
		}
	}
	if !d.compared { // later, a list reports what it leaves out, and a watch deletions
		d.compared = true
		d.services.leftOutLocked(without)
		if d.pods.leftOutLocked(gone) {
			return
		}
	}
	for _, id := range gone {
		d.spaceLocked(id.Namespace).changed[id.Name] = true
	}
}

// inOrder returns the Services ordered by name.
func (s *space) inOrder() []*Service {
	return slices.SortedFunc(maps.Values(s.services), func(a, b *Service) int {
		return cmp.Compare(a.Metadata.Name, b.Metadata.Name)
	})
}

// namespaceOf returns the namespace of the pod or Service that a resource was made of.
func (d *Controller) namespaceOf(r *resources.Resource) string {
	if r.Type == resources.TypeZoneIngress {
		return d.Home.OperatorsNamespace()
	}
	return r.Namespace
}

// pod plans the Dataplane of a pod, which may be gone, or its ZoneIngress if it is the operator's.
func (p *pass) pod(s *space, name string, services []*Service) {
	key := resources.Key{Type: resources.TypeDataplane, Namespace: s.name, Name: name}
	p.marks = append(p.marks, key)
	var want *resources.Resource
	var problems []Problem
	stays := false // the version that is stored
	pod, operators := s.pods[name], s.name == p.d.Home.OperatorsNamespace()
	if pod != nil {
		var err error
		if node := p.d.nodes[pod.Spec.NodeName]; operators {
			want, problems, err = IngressOf(pod, services, node, p.d.known)
		} else {
			want, problems, err = DataplaneOf(pod, services, node)
			problems = slices.Concat(problems, pod.estranged(p.authority), p.d.unprovenLocked(pod))
		}
		switch {
		case errors.Is(err, errTooBig):
			problems, stays = append(problems, problem(ReasonTooBig, "%v", err)), true
		case err != nil:
			problems = append(problems, problem(ReasonInvalid, "%v", err))
		}
	}
	want, problems = p.admit(want, problems)
	if want != nil {
		problems = append(problems, p.put(want)...)
	}
	for mesh := range p.d.meshes {
		if key.Mesh = mesh; !stays && (want == nil || key != want.Key) {
			p.remove(p.snap.Get(key))
		}
	}
	parted := !p.d.Now().Before(s.parting[name])
	if operators && want == nil && len(problems) == 0 && parted { // a Service that has lost its address keeps the last
		p.remove(p.snap.Get(resources.Key{Type: resources.TypeZoneIngress, Name: name}))
	}
	of := object{kind: "Pod", namespace: s.name, name: name}
	if pod != nil {
		of.uid = pod.Metadata.UID
	}
	p.d.reportLocked(of, problems)
}

// services plans the MeshServices of a namespace: of all Services, or of some if only the pods behind them changed.
// only is nil for all.
func (p *pass) services(s *space, services []*Service, only map[string]bool) {
	p.marks = append(p.marks, resources.Key{Type: resources.TypeMeshService, Namespace: s.name})
	pods := slices.SortedFunc(maps.Values(s.pods), func(a, b *Pod) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	if p.d.Home.IsOperators(s.name) {
		services = nil
	}
	if only != nil {
		services = slices.DeleteFunc(slices.Clone(services), func(one *Service) bool { return !only[one.Metadata.Name] })
	}
	kept, wanted, problems := map[resources.Key]bool{}, make([][]*resources.Resource, len(services)), make([][]Problem, len(services))
	for i, one := range services {
		all, err := MeshServicesOf(one, s.namespace, pods)
		if err != nil {
			problems[i] = append(problems[i], problem(ReasonInvalid, "%v", err))
		}
		for _, want := range all {
			if want, problems[i] = p.admit(want, problems[i]); want == nil {
				continue
			}
			if kept[want.Key] {
				problems[i] = append(problems[i], problem(ReasonNameTaken, "the MeshService %s already belongs to another Service", want.Name))
				continue
			}
			kept[want.Key] = true
			want, why := p.identified(s, one, want)
			wanted[i], problems[i] = append(wanted[i], want), append(problems[i], why...)
		}
	}
	if only == nil {
		p.unkept(s, kept)
	}
	for _, ofPods := range []bool{false, true} { // if there is no room for all, pods come last
		for i, one := range services {
			for _, want := range wanted[i] {
				if ofPods == (want.Name != one.Metadata.Name) {
					problems[i] = append(problems[i], p.put(want)...)
				}
			}
		}
	}
	for i, one := range services {
		p.d.reportLocked(object{"Service", s.name, one.Metadata.Name, one.Metadata.UID}, problems[i])
	}
}

// unkept plans the removal of a namespace's MeshServices that belong to no Service any more.
func (p *pass) unkept(s *space, kept map[resources.Key]bool) {
	for r := range p.snap.List(store.Query{Type: resources.TypeMeshService, Namespace: &s.name,
		Labels: map[string]string{resources.LabelManagedBy: resources.ManagedByDiscovery}}) {
		if !kept[r.Key] {
			p.remove(r)
		}
	}
}

// admit returns a resource as the store has it, or nil with the reason.
func (p *pass) admit(want *resources.Resource, problems []Problem) (*resources.Resource, []Problem) {
	if want == nil {
		return nil, problems
	}
	if want.Type != resources.TypeZoneIngress && !slices.Contains(p.meshes, want.Mesh) {
		return nil, append(problems, problem(ReasonNoMesh, "mesh %q not found: create it, or name another in the label %s of the %s "+
			"or its namespace", want.Mesh, resources.LabelMesh, madeOf(want)))
	}
	if err := resources.Validate(want, p.d.Home); err != nil {
		return nil, append(problems, problem(ReasonInvalid, "%v", err))
	}
	return p.d.Home.Labelled(want), problems
}

func madeOf(r *resources.Resource) string {
	if r.Type == resources.TypeMeshService {
		return "Service"
	}
	return "Pod"
}

// put plans to write a resource if the store's version differs or is missing. It keeps resources that a user wrote, and
// those that cannot be replaced.
func (p *pass) put(want *resources.Resource) []Problem {
	if want.Mesh != "" {
		p.d.meshes[want.Mesh] = true
	}
	old := p.snap.Get(want.Key)
	op := store.Op{Put: want, If: store.IfAbsent()}
	switch {
	case old == nil:
	case !p.d.Home.Discovered(old):
		return []Problem{problem(ReasonNameTaken, "a %s %s that a user wrote has this name, and stays: the %s is not in the mesh "+
			"until it is deleted", want.Type, apiserver.Name{Namespace: want.Namespace, Name: want.Name}, madeOf(want))}
	case old.SameContent(want):
		return nil
	default:
		op.If = store.IfRevision(old.Revision)
	}
	if err := store.CheckSize(want, old); err != nil {
		return []Problem{problem(ReasonTooBig, "%v: give the %s fewer labels, or fewer ports", err, madeOf(want))}
	}
	if why := p.crowds(want, old); why != "" {
		return []Problem{problem(ReasonFull, "%s", why)}
	}
	p.ops = append(p.ops, op)
	return nil
}

// remove plans to remove a resource, if discovery made it.
func (p *pass) remove(old *resources.Resource) {
	if old == nil || !p.d.Home.Discovered(old) || p.d.keeps(old) {
		return
	}
	p.removals = append(p.removals, store.Op{Delete: old.Key, If: store.IfRevision(old.Revision)})
	p.leaves(old)
}
