// Package resources is Causeway's model: resources, their types, and how they are named (KRI), labelled, decoded,
// validated and assigned a role. It does not depend on stores, servers or streams. Everything in it is a value or a
// pure function, and no code changes a Resource after it has been handed out.
package resources
