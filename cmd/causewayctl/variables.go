package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/credential/contexts"
)

// variablePrefix begins the names of all our environment variables.
const variablePrefix = "CAUSEWAY_"

// variables returns the names that this program reads.
func variables() []string {
	return []string{addressEnv, caEnv, tokenEnv, tokenFileEnv, pinEnv, contexts.Env, serverAPIEnv, serverDiagnosticsEnv,
		serverDataEnv}
}

// nearMiss is how many letters may differ between a variable and the intended one.
const nearMiss = 2

// warnOfVariables warns of each variable that is almost one that this program reads. Others belong to servers, or to a
// cluster that names its services.
func warnOfVariables(w io.Writer, environment []string) {
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) || slices.Contains(variables(), name) {
			continue
		}
		for _, known := range variables() {
			if distanceOf(name, known) <= nearMiss {
				fmt.Fprintf(w, "warning: nothing reads the variable %s: is it %s?\n", name, known)
				break
			}
		}
	}
}
