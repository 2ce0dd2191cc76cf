// Package place notices that a file or a folder is no longer where it was opened: moved, removed, replaced, or hidden by a mount. A
// process that has a file open can go on writing to it, and whoever starts next at that path finds nothing of it. It must not
// know what the files hold, and imports nothing of ours.
package place
