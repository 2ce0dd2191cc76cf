// Package place notices that a file or a folder is no longer where it was opened: it was moved, removed, replaced, or
// hidden by a mount. A process that has a file open can continue to write to it, but the next process to start at that
// path does not find what it wrote. The package does not depend on the content of the files, and imports nothing of
// Causeway.
package place
