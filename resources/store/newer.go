package store

import "fmt"

// NewerFormat is the error, err, of something that a newer version of this program wrote: it has a format, and this program reads up
// to another. program is the version that wrote it, empty when it does not say.
func NewerFormat(err error, what string, format, reads int, program string) error {
	needed := "use the newer program"
	if program != "" {
		needed = fmt.Sprintf("use version %q, which wrote it, or a newer one", program)
	}
	return fmt.Errorf("%s has format %d, and this program reads up to %d: %w: %s", what, format, reads, err, needed)
}
