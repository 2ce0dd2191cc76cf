// Command docs writes docs/reference from the code: `make docs`. The pages about programs come from the programs
// themselves, those about types and the HTTP API from the schemas that validate documents, the one about metrics from
// the sources. The same code always produces the same pages. It must not be imported.
package main
