//go:build !linux

package server

// place is not known here: copies of folders are not told apart.
func birthOf(string) (string, error) { return "", nil }
