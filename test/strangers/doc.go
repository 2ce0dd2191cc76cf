// Package strangers provides callers that prove nothing and cost as much as they can, for tests and measurements of
// what a server spends on them.
package strangers
