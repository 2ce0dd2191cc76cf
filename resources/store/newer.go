package store

import "fmt"

// NewerFormat wraps err for data in a format newer than this program reads. what names the data, format is its format,
// and reads is the newest format that this program reads. program is the version that wrote the data, or empty if
// unknown.
func NewerFormat(err error, what string, format, reads int, program string) error {
	needed := "use the newer program"
	if program != "" {
		needed = fmt.Sprintf("use version %q, which wrote it, or a newer one", program)
	}
	return fmt.Errorf("%s has format %d, and this program reads up to %d: %w: %s", what, format, reads, err, needed)
}
