// Package app provides the small applications behind the proxies of the demo and of the tests: an HTTP server and a TCP
// echo, on real sockets. They count the requests that reach them, so that a test can show that one did not. They do not
// depend on the mesh.
package app
