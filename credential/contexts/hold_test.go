package contexts

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestHoldOfAFileWithTwoNames names one file twice: its holder does not wait for itself.
func TestHoldOfAFileWithTwoNames(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("there.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("there.yaml", "link.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, names := range [][]string{
		{"new.yaml", filepath.Join(dir, "new.yaml")}, {"there.yaml", "./there.yaml", filepath.Join(dir, "there.yaml")},
		{filepath.Join(dir, "there.yaml"), "link.yaml"},
	} {
		list := names[0]
		for _, name := range names[1:] {
			list += string(os.PathListSeparator) + name
		}
		t.Setenv(Env, list)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		release, err := Hold(ctx, "")
		cancel()
		if err != nil {
			t.Errorf("%s: %v", list, err)
			continue
		}
		release()
	}
}
