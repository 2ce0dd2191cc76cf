package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// Verify checks the file as a starting server does, and changes nothing. ctx bounds the reading. Errors: ErrInUse,
// ErrDamaged, ErrFormat, fs.ErrNotExist, ctx's, and the operating system's.
func Verify(ctx context.Context, path string) error {
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file: %w", path, fs.ErrInvalid)
	}
	f, err := openFile(path, time.Second)
	if err != nil {
		return err
	}
	_, err = f.read(func(*resources.Resource) error { return ctx.Err() })
	return errors.Join(err, f.close())
}
