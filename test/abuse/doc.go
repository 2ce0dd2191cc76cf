// Package abuse holds the table of what must not work: attempts to get in, or to do more than one may, each beside the same
// attempt by somebody who may, so that no row passes because of something else. The rows are files in testdata; attempts
// that are not HTTP requests are functions (attempts in attempt_test.go) that rows name.
package abuse
