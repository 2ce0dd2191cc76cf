// Package resources is Causeway's model: what a resource is, which types there are, how resources are named (KRI),
// labelled, decoded, validated and given a role. It knows nothing of stores, servers or streams; everything in it is
// a value or a pure function, and a Resource handed out is never changed.
package resources
