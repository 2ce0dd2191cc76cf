// Package access owns who may do what with a server: who asks (Subject), what is asked (Action), which roles allow it
// (Roles), and the audit log of what was done and refused (Log). Guard is all of it in front of the HTTP API. It does not
// know HTTP routes, and nothing of KDS or xDS.
package access
