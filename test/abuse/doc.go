// Package abuse holds the table of what must not work: attempts to get in, or to do more than a caller may. Each is
// paired with the same attempt by an authorised caller, so that no row passes for another reason. The rows are files in
// testdata. Attempts that are not HTTP requests are functions (attempts in attempt_test.go) that rows name. Attempts that
// take more than that are tests of their own, here or beside the code: the table at the end of docs/security.md leads from
// each to its test.
package abuse
