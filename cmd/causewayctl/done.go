package main

import (
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
)

// What became of a thing, in the output of commands that delete, set or revoke.
const (
	resultDeleted  = "deleted"
	resultNotFound = "not found"
	resultSet      = "set"
	resultRevoked  = "revoked"
)

// doneItem is one thing that a command has dealt with, for programs: of apply's results, what they have in common.
type doneItem struct {
	Type      string `json:"type"`
	Mesh      string `json:"mesh,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Result    string `json:"result"`
}

// doneItems is what a command has dealt with. What failed is an error, and not among it.
type doneItems struct {
	Results []doneItem `json:"results"`
}

func doneWith(key resources.Key, result string) doneItem {
	return doneItem{Type: string(key.Type), Mesh: key.Mesh, Namespace: key.Namespace, Name: key.Name, Result: result}
}

// printDone prints one thing for programs, and a sentence for people.
func (c *cli) printDone(item doneItem, format string, args ...any) error {
	return c.printAnswer(doneItems{[]doneItem{item}}, func() error {
		_, err := fmt.Fprintf(c.out, format+"\n", args...)
		return err
	})
}
