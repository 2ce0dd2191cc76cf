// Package explain answers questions about permissions: may this client do that, who decides, and what would change it
// (Explain); does a folder of policies meet written expectations (RunTests); which policies differ from what their
// author may expect (Lint). It is pure: it reads a snapshot of a store, or resources from files, and gets the rules
// from zone/matching and the verdict from zone/rbac. It makes no decisions of its own and never writes.
package explain
