// Package callers answers who may call whom: the services of a mesh against their callers, by the rules that proxies
// get, combined with proxies' reports. It keeps each mesh parsed between questions and parses only changes. It makes no
// decisions of its own, and never writes.
package callers
