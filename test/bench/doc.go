// Command bench measures whole servers under load: a global with many simulated zones, a zone with many simulated proxies,
// and, beside the global, a bare gRPC sender of the same bytes. It holds the figures against the goals, writes them into
// docs/performance.md, and ends with status 1 when one misses its goal. With -soak it loads a mesh for minutes and watches
// memory, goroutines and files instead.
//
// The simulated peers speak the protocols on raw bytes, so that the machine is the servers'. They share nothing with the
// servers, and bench must not reach into one otherwise than over its sockets and /proc.
package main
