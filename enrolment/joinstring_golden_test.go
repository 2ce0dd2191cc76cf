package enrolment

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

var _ = flag.Bool("update", false, "write the golden file of the present format, where there is none")

// joinStringOf returns the golden file of a format of join strings.
func joinStringOf(t *testing.T, format int) string {
	t.Helper()
	path := storetest.GoldenFile(t, format, ".join", func(path string) error {
		text, err := aJoinString().Encode()
		if err != nil || !strings.HasPrefix(text, fmt.Sprintf("causeway-join:v%d:", format)) {
			return fmt.Errorf("format %d: only the present one can be written: %w", format, err)
		}
		return os.WriteFile(path, []byte(text+"\n"), 0o600)
	})
	return readJoinString(t, path)
}

func readJoinString(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestGoldenJoinStrings checks that a string of each format still parses to the same content.
func TestGoldenJoinStrings(t *testing.T) {
	t.Parallel()
	all := []string{readJoinString(t, "testdata/format-1-first.join")}
	for i := range joinFormats() {
		all = append(all, joinStringOf(t, i+1))
	}
	for _, text := range all {
		got, err := ParseJoinString(text)
		if diff := cmp.Diff(aJoinString(), got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	now, err := aJoinString().Encode()
	if newest := joinStringOf(t, len(joinFormats())); err != nil || now+"\n" != newest {
		t.Errorf("the format has changed: give it a new number, and keep what reads the old one\ngot  %s\nwant %s",
			now, newest)
	}
}

// TestJoinStringOfANewerFormat checks that it is refused, with an error that names the version that can read it.
func TestJoinStringOfANewerFormat(t *testing.T) {
	t.Parallel()
	reads := len(joinFormats())
	newer := strings.Replace(joinStringOf(t, reads), fmt.Sprintf(":v%d:", reads), fmt.Sprintf(":v%d:", reads+1), 1)
	want := fmt.Sprintf("the join string's format is too new: it has format %d, and this program reads up to %d: use the version that the global has (causewayctl version shows it), or a newer one", reads+1, reads)
	if _, err := ParseJoinString(newer); !errors.Is(err, ErrJoinFormat) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
