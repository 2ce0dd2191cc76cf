package store

import "github.com/causeway-mesh/causeway/resources"

// separator ends a part of an index key. It sorts before every other byte, so keys sort by their parts. The store refuses
// it in what it stores, so parts cannot run into each other, and a lookup of a key that contains it finds nothing.
const separator = 0

// usualKey is room for most keys, so that lookups allocate nothing.
const usualKey = 256

// index holds the resources of a view. A copy that is sealed before it changes again stays as it is.
type index struct {
	// byKey has the resources by type, mesh, namespace and name, so its prefixes serve lists by type, by mesh and by
	// namespace.
	byKey tree[*resources.Resource]
	// byLabel has, for each label of a resource, its key in byKey by type, label and value, followed by that key. A change
	// of a resource that leaves its labels leaves this tree.
	byLabel tree[string]
	// counts has the number of resources of each type in each mesh, at least one, so that counting them takes no walk.
	counts tree[int]
}

// seal leaves all copies made so far as they are.
func (x *index) seal() {
	x.byKey.seal()
	x.byLabel.seal()
	x.counts.seal()
}

// get returns the resource of a key, or nil if there is none.
func (x *index) get(k resources.Key) *resources.Resource {
	var room [usualKey]byte
	r, _ := x.byKey.get(appendKey(room[:0], k))
	return r
}

// set replaces old, which is nil if the key is new, by r, which is nil if the key goes.
func (x *index) set(old, r *resources.Resource) {
	var room [usualKey]byte
	if r != nil {
		x.byKey.put(appendKey(room[:0], r.Key), r)
	} else {
		x.byKey.remove(appendKey(room[:0], old.Key))
		x.count(old.Key, -1)
	}
	if old == nil {
		x.count(r.Key, 1)
	}
	x.setLabels(old, r)
}

func (x *index) setLabels(old, r *resources.Resource) {
	var room [usualKey]byte
	if old != nil {
		for label, value := range old.Labels {
			if !hasLabel(r, label, value) {
				x.byLabel.remove(appendKey(appendLabel(room[:0], old.Type, label, value), old.Key))
			}
		}
	}
	if r == nil {
		return
	}
	key := ""
	for label, value := range r.Labels {
		if hasLabel(old, label, value) {
			continue
		}
		if key == "" {
			key = string(appendKey(room[:0], r.Key))
		}
		x.byLabel.put(append(appendLabel(room[:0], r.Type, label, value), key...), key)
	}
}

func hasLabel(r *resources.Resource, label, value string) bool {
	if r == nil {
		return false
	}
	got, has := r.Labels[label]
	return has && got == value
}

// count adds n to the number of resources that are in the mesh of a key and of its type.
func (x *index) count(k resources.Key, n int) {
	var room [usualKey]byte
	key := appendPart(appendPart(room[:0], string(k.Type)), k.Mesh)
	has, _ := x.counts.get(key)
	if has+n == 0 {
		x.counts.remove(key)
		return
	}
	x.counts.put(key, has+n)
}

// countOf returns how many resources of a type a mesh has.
func (x *index) countOf(of resources.Type, mesh string) int {
	var room [usualKey]byte
	n, _ := x.counts.get(appendPart(appendPart(room[:0], string(of)), mesh))
	return n
}

// total returns how many resources of a type there are.
func (x *index) total(of resources.Type) (all int) {
	var room [usualKey]byte
	x.counts.each(appendPart(room[:0], string(of)), func(n int) bool {
		all += n
		return true
	})
	return all
}

// all yields every resource, in the order of keys.
func (x *index) all(yield func(*resources.Resource) bool) { x.byKey.each(nil, yield) }

// list yields the resources that q selects, in the order of keys.
func (x *index) list(q *Query, yield func(*resources.Resource) bool) {
	var room [usualKey]byte
	label, some := leastKey(q.Labels)
	if !some {
		x.byKey.each(q.appendPrefix(room[:0]), func(r *resources.Resource) bool { return !q.selects(r) || yield(r) })
		return
	}
	prefix := q.appendPrefix(appendLabel(room[:0], q.Type, label, q.Labels[label]))
	x.byLabel.each(prefix, func(key string) bool {
		var room [usualKey]byte
		r, _ := x.byKey.get(append(room[:0], key...))
		return !q.selects(r) || yield(r)
	})
}

func appendKey(b []byte, k resources.Key) []byte {
	b = appendPart(b, string(k.Type))
	b = appendPart(b, k.Mesh)
	b = appendPart(b, k.Namespace)
	return append(b, k.Name...)
}

func appendLabel(b []byte, t resources.Type, label, value string) []byte {
	b = appendPart(b, string(t))
	b = appendPart(b, label)
	return appendPart(b, value)
}

func appendPart(b []byte, part string) []byte {
	return append(append(b, part...), separator)
}

// appendPrefix appends what the keys of the resources that q may select begin with.
func (q *Query) appendPrefix(b []byte) []byte {
	b = appendPart(b, string(q.Type))
	if q.Mesh == "" {
		return b
	}
	b = appendPart(b, q.Mesh)
	if q.Namespace != nil {
		b = appendPart(b, *q.Namespace)
	}
	return b
}

// selects reports whether q selects r.
func (q *Query) selects(r *resources.Resource) bool {
	if r.Type != q.Type || (q.Mesh != "" && r.Mesh != q.Mesh) || (q.Namespace != nil && r.Namespace != *q.Namespace) {
		return false
	}
	for label, value := range q.Labels {
		if got, ok := r.Labels[label]; !ok || got != value {
			return false
		}
	}
	return true
}

// leastKey returns the first of the keys in their order; ok is false if there is none.
func leastKey(m map[string]string) (least string, ok bool) {
	for key := range m {
		if !ok || key < least {
			least, ok = key, true
		}
	}
	return least, ok
}
