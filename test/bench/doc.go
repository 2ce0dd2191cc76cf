// Command bench measures whole servers under load: a global with many simulated zones, a zone with many simulated
// proxies, and, beside the global, a bare gRPC sender of the same bytes. It compares the figures with the goals, writes
// them into docs/performance.md, and ends with status 1 if one misses its goal. With -soak it loads a mesh for minutes
// and watches memory, goroutines and files instead.
//
// The simulated peers speak the protocols on raw bytes, so that the servers get most of the machine. They share nothing
// with the servers but the dictionary of compressed frames and the generated envelope; only the zone behind a thin link is
// the real one. With -only page, a Chromium is in front of the global: web/speed clicks and measures. bench must not
// access a server except through its sockets and /proc.
package main
