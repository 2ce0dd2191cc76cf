package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// Verify judges the file as a server does that starts on it, and changes nothing. Errors: ErrInUse, ErrDamaged, ErrFormat,
// fs.ErrNotExist, and the operating system's.
func Verify(path string) error {
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file: %w", path, fs.ErrInvalid)
	}
	f, err := openFile(path, time.Second)
	if err != nil {
		return err
	}
	_, err = f.read(func(*resources.Resource) error { return nil })
	return errors.Join(err, f.close())
}
