package store

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/hashicorp/go-memdb"

	"github.com/causeway-mesh/causeway/resources"
)

const (
	table = "resources"
	// populationTable counts the resources of the table.
	populationTable = "populations"
	indexID         = "id"
	indexLabel      = "label"
	byPrefix        = "_prefix"

	// separator ends a part of an index key. It sorts before every other byte, so keys sort by their parts. The store
	// refuses it in what it stores, so parts cannot run into each other, and a lookup of a key that contains it finds
	// nothing.
	separator = 0
)

// schema has two indexes. The index by key starts with type, mesh and namespace, so its prefixes serve lists by type,
// by mesh and by namespace. The index by label starts with type, label and value, followed by the key.
func schema() *memdb.DBSchema {
	return &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
		table: {
			Name: table,
			Indexes: map[string]*memdb.IndexSchema{
				indexID:    {Name: indexID, Unique: true, Indexer: keyIndexer{}},
				indexLabel: {Name: indexLabel, AllowMissing: true, Indexer: labelIndexer{}},
			},
		},
		populationTable: {
			Name:    populationTable,
			Indexes: map[string]*memdb.IndexSchema{indexID: {Name: indexID, Unique: true, Indexer: populationIndexer{}}},
		},
	}}
}

// keyIndexer orders resources by type, mesh, namespace and name.
type keyIndexer struct{}

// FromObject is called by memdb for each *resources.Resource that it stores.
func (keyIndexer) FromObject(raw any) (bool, []byte, error) {
	return true, appendKey(nil, raw.(*resources.Resource).Key), nil
}

// FromArgs accepts one resources.Key.
func (keyIndexer) FromArgs(args ...any) ([]byte, error) {
	k, ok := args[0].(resources.Key)
	if !ok || len(args) != 1 {
		return nil, fmt.Errorf("want one key, not %v", args)
	}
	return appendKey(nil, k), nil
}

// PrefixFromArgs returns the prefix unchanged.
func (keyIndexer) PrefixFromArgs(args ...any) ([]byte, error) { return prefixArg(args) }

// labelIndexer has one entry for each label of a resource; memdb appends the key to each.
type labelIndexer struct{}

// FromObject is called by memdb, which appends to the entries: each must have its own bytes. Their order is that of the
// labels: of a resource that changes, memdb removes the entries that differ from the new one in the same place.
func (labelIndexer) FromObject(raw any) (bool, [][]byte, error) {
	r := raw.(*resources.Resource)
	entries := make([][]byte, 0, len(r.Labels))
	for label, value := range r.Labels {
		entries = append(entries, appendLabel(nil, r.Type, label, value))
	}
	slices.SortFunc(entries, bytes.Compare)
	return len(entries) > 0, entries, nil
}

// FromArgs returns the index key unchanged.
func (labelIndexer) FromArgs(args ...any) ([]byte, error) { return prefixArg(args) }

// PrefixFromArgs returns the prefix unchanged.
func (labelIndexer) PrefixFromArgs(args ...any) ([]byte, error) { return prefixArg(args) }

func prefixArg(args []any) ([]byte, error) {
	p, ok := args[0].([]byte)
	if !ok || len(args) != 1 {
		return nil, fmt.Errorf("want one prefix, not %v", args)
	}
	return p, nil
}

func appendKey(b []byte, k resources.Key) []byte {
	if b == nil {
		b = make([]byte, 0, len(k.Type)+len(k.Mesh)+len(k.Namespace)+len(k.Name)+3)
	}
	b = appendPart(b, string(k.Type))
	b = appendPart(b, k.Mesh)
	b = appendPart(b, k.Namespace)
	return append(b, k.Name...)
}

func appendLabel(b []byte, t resources.Type, label, value string) []byte {
	if b == nil {
		// Room for the key that memdb appends.
		b = make([]byte, 0, len(t)+len(label)+len(value)+128)
	}
	b = appendPart(b, string(t))
	b = appendPart(b, label)
	return appendPart(b, value)
}

func appendPart(b []byte, part string) []byte {
	return append(append(b, part...), separator)
}

// lookup returns the most selective index for q and the prefix of its keys to scan.
func (q *Query) lookup() (index string, prefix []byte) {
	index = indexID
	if label, ok := firstKey(q.Labels); ok {
		index = indexLabel
		prefix = appendLabel(nil, q.Type, label, q.Labels[label])
	}
	prefix = appendPart(prefix, string(q.Type))
	if q.Mesh == "" {
		return index, prefix
	}
	prefix = appendPart(prefix, q.Mesh)
	if q.Namespace != nil {
		prefix = appendPart(prefix, *q.Namespace)
	}
	return index, prefix
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

func firstKey(m map[string]string) (string, bool) {
	if len(m) == 0 {
		return "", false
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	return slices.Min(keys), true
}
