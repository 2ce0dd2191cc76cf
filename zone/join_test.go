package zone_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/zone"
)

// TestJoinWithoutAJoinString checks that text that is no join string leaves no data folder behind.
func TestJoinWithoutAJoinString(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "zone")
	for _, text := range []string{"garbage", "", "causeway-join:v1:!"} {
		if _, err := zone.Join(t.Context(), zone.JoinConfig{Join: text, DataDir: dir, Log: discardLog()}); !errors.Is(err, enrolment.ErrJoinString) {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Fatalf("%q: the data folder is there", text)
		}
	}
}
