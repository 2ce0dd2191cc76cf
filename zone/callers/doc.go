// Package callers answers who may call whom: the services of a mesh against their callers, by the rules that proxies get,
// with what proxies reported laid over it. It keeps each mesh parsed between questions and parses again only what has
// changed. It makes no decisions of its own, and never writes.
package callers
