package etcd

import (
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// part is the contents of one transaction.
type part struct {
	ops  []clientv3.Op
	size int
	// key is that of the last operation.
	key resources.Key
}

// cut divides the changes of a group of commits into parts of at most maxBytes: each key once, at the place of its last
// change, in the order of the commits and of their changes. A resource that is bigger than a part gets its own.
func (s *Store) cut(commits []*store.Commit, maxBytes int) ([]part, error) {
	var parts []part
	current := part{}
	for _, key := range order(commits) {
		op, size, err := s.op(key.key, key.resource)
		if err != nil {
			return nil, err
		}
		if len(current.ops) == s.config.MaxOps || len(current.ops) > 0 && current.size+size > maxBytes {
			parts = append(parts, current)
			current = part{}
		}
		current.ops = append(current.ops, op)
		current.size += size
		current.key = key.key
	}
	return append(parts, current), nil
}

func (s *Store) op(key resources.Key, r *resources.Resource) (op clientv3.Op, size int, err error) {
	name := s.keys.resource(key)
	if r == nil {
		return clientv3.OpDelete(name), len(name), nil
	}
	value, err := store.EncodeValue(store.EncodeKey(key), r)
	if err != nil {
		return op, 0, fmt.Errorf("encode: %w", err)
	}
	return clientv3.OpPut(name, string(value)), len(name) + len(value), nil
}

type keyed struct {
	key      resources.Key
	resource *resources.Resource
}

// order returns the net effect of commits, in order of each key's last change.
func order(commits []*store.Commit) []keyed {
	var all []keyed
	for _, c := range commits {
		for _, change := range c.Changes {
			all = append(all, keyed{change.Key(), change.New})
		}
	}
	last := make(map[resources.Key]int, len(all))
	for i, k := range all {
		last[k.key] = i
	}
	net := all[:0]
	for i, k := range all {
		if last[k.key] == i {
			net = append(net, k)
		}
	}
	return net
}
