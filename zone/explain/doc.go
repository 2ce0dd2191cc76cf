// Package explain answers questions about permissions: may this client do that, who decides, what would change it
// (Explain); does a folder of policies keep to written expectations (RunTests); which policies do not do what their
// writer may think (Lint). It is pure: it reads a snapshot of a store, or resources from files, and asks zone/matching for
// the rules and zone/rbac for the verdict; it decides nothing of its own and never writes.
package explain
