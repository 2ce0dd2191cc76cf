package exchange

import (
	"testing"

	"github.com/causeway-mesh/causeway/hashing"
)

// TestApartNames checks that alternative names are valid names, differ between zones, and never follow the wire's rule.
func TestApartNames(t *testing.T) {
	t.Parallel()
	long := hashing.Name("default", string(make([]byte, 300)), "zone-1")
	for _, name := range []string{"x-bcdfghjklmnpqrst", long} {
		apart := ApartName("default", name, "zone-1")
		if len(apart) > hashing.MaxNameLength || apart == ApartName("default", name, "zone-2") ||
			apart == ApartName("other", name, "zone-1") {
			t.Errorf("%q", apart)
		}
	}
	if last := hashing.Name("m", "n")[len(hashing.Name("m", "n"))-1:]; last == apartMark {
		t.Errorf("%q ends as the names apart do", last)
	}
}
