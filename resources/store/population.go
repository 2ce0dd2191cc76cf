package store

import (
	"fmt"

	"github.com/hashicorp/go-memdb"

	"github.com/causeway-mesh/causeway/resources"
)

// population is how many resources of a type a mesh has, at least one. It is kept beside the resources, so that
// counting them takes no walk. It is immutable.
type population struct {
	populated
	n int
}

// populated is what a population is of.
type populated struct {
	of   resources.Type
	mesh string
}

// populationIndexer finds populations by what they are of.
type populationIndexer struct{}

// FromObject is called by memdb for each *population that it stores.
func (populationIndexer) FromObject(raw any) (bool, []byte, error) {
	p := raw.(*population).populated
	return true, appendPart(appendPart(nil, string(p.of)), p.mesh), nil
}

// FromArgs accepts one populated.
func (populationIndexer) FromArgs(args ...any) ([]byte, error) {
	p, ok := args[0].(populated)
	if !ok || len(args) != 1 {
		return nil, fmt.Errorf("want what a population is of, not %v", args)
	}
	return appendPart(appendPart(nil, string(p.of)), p.mesh), nil
}

// countIn returns how many resources of a type a mesh has.
func countIn(txn *memdb.Txn, p populated) int {
	raw, err := txn.First(populationTable, indexID, p)
	if err != nil {
		panic(fmt.Sprintf("count %s of %s: %v", p.of, p.mesh, err)) // The schema is fixed: this is a programming error.
	}
	if known, ok := raw.(*population); ok {
		return known.n
	}
	return 0
}

// populate adds n to a population.
func populate(txn *memdb.Txn, p populated, n int) error {
	has := countIn(txn, p)
	if has+n == 0 {
		return txn.Delete(populationTable, &population{populated: p})
	}
	return txn.Insert(populationTable, &population{p, has + n})
}
