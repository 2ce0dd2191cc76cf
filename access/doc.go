// Package access decides who may do what with a server: the caller (Subject), the request (Action), the roles that
// allow it (Roles), and the audit log of what was done and refused (Log). Guard combines them in front of the HTTP API.
// It does not depend on HTTP routes, KDS or xDS.
package access
