// Package app is the small applications that stand behind the proxies of the demo and of the tests: an HTTP one and a
// TCP echo, on real sockets. They count what reaches them, so that a test can say that something did not. They know
// nothing of the mesh.
package app
