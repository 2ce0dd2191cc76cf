package main

import (
	"fmt"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// What became of a thing, in the output of commands that delete, set or revoke.
const (
	resultDeleted  = "deleted"
	resultNotFound = "not found"
	resultSet      = "set"
	resultRevoked  = "revoked"
)

// doneItems is what a command has dealt with, in the shape of apply's results. What failed is an error, and not among it.
type doneItems struct {
	Results []api.BatchedItem `json:"results"`
}

func doneWith(key resources.Key, result string) api.BatchedItem {
	return api.BatchedItem{Type: key.Type, Mesh: key.Mesh, Namespace: key.Namespace, Name: key.Name, Result: result}
}

// printDone prints one thing for programs, and a sentence for people.
func (c *cli) printDone(item api.BatchedItem, format string, args ...any) error {
	return c.printAnswer(doneItems{[]api.BatchedItem{item}}, func() error {
		_, err := fmt.Fprintf(c.out, format+"\n", args...)
		return err
	})
}
