// Command docs writes docs/reference from the code: `make docs`. The pages about programs are what the programs say of
// themselves, those about types and the HTTP API what documents are held against, the one about metrics is read from the
// sources. The same code makes the same pages. It must not be imported.
package main
