package hashing_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/hashing"
)

// The vectors were computed by Kuma's own function, which defines the names in Kuma's KDS.
func TestNameVectors(t *testing.T) {
	ten := strings.Repeat("abcdefghij", 26)
	tests := []struct {
		mesh, name string
		extra      []string
		want       string
	}{
		{"default", "mtp-1", nil, "mtp-1-9v2z79f4557d687w"},
		{"default", "mtp-1", []string{"zone-1"}, "mtp-1-6czzcxb6vc2w9f74"},
		{"default", "mtp-1", []string{"zone-1", "kuma-demo"}, "mtp-1-fz47zxd2x86zfx87"},
		{"default", "mtp-1", []string{"kuma-demo"}, "mtp-1-f79cxc4bxc784dx4"},
		{"", "ingress", []string{"kuma-4"}, "ingress-xzfw5d7w6f69x9fc"},
		{"", "zone-token-signing-public-key-1", nil, "zone-token-signing-public-key-1-wdw88d7c29z9xbc9"},
		{"default", "backend.kuma-demo", []string{"zone-1"}, "backend.kuma-demo-454b222fd45zxxcv"},
		{"default", "backend", []string{"zone-1", "kuma-demo"}, "backend-5b4f4xdx76x7zxxx"},
		{"default", "backend_kuma-demo_svc_80.mesh", nil, "backend_kuma-demo_svc_80.mesh-7v7bbbwfw8644fd6"},
		{"default", strings.Repeat("x", 236), []string{"zone-1"}, strings.Repeat("x", 236) + "-9z582ff225zcxwv6"},
		{"default", strings.Repeat("x", 237), []string{"zone-1"}, strings.Repeat("x", 236) + "-8c8z6wcf6xb4vx4b"},
		{"default", ten, nil, ten[:236] + "-x2w7f98fc97ww55v"},
		{"payments-prod", ten, []string{"east-1", "ns-a"}, ten[:236] + "-42v7w4fw474zvd46"},
		{"default", "żółw", nil, "żółw-bfvv6284c9fbc8fw"},
		{"default", strings.Repeat("ż", 120), nil, strings.Repeat("ż", 118) + "-9z4w6bdb46948f72"},
		{"ab", "c", nil, "c-2c54v65f49859c8w"},
		{"a", "bc", nil, "bc-2c54v65f49859c8w"},
		{"default", "a", []string{"", ""}, "a-fdz968892fv4xz6z"},
		{"", "", nil, "-xw46fx28d8666769"},
	}
	for _, tt := range tests {
		if got := hashing.Name(tt.mesh, tt.name, tt.extra...); got != tt.want {
			t.Errorf("Name(%q, %.20q, %q) = %q, want %q", tt.mesh, tt.name, tt.extra, got, tt.want)
		}
		for _, other := range []string{tt.want + "x", tt.want[1:], tt.name, "other" + tt.want} {
			if !hashing.MayBeOf(tt.want, tt.name) || hashing.MayBeOf(other, tt.name) {
				t.Errorf("MayBeOf(%.20q, %.20q) = %v, and of %.20q", tt.want, tt.name, hashing.MayBeOf(tt.want, tt.name), other)
			}
		}
	}
}

func TestNameLengthAndAlphabet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.String().Draw(t, "name")
		got := hashing.Name(rapid.String().Draw(t, "mesh"), name, rapid.SliceOfN(rapid.String(), 0, 2).Draw(t, "extra")...)
		prefix := name[:min(len(name), 236)]
		if !strings.HasPrefix(got, prefix+"-") {
			t.Fatalf("%q does not begin with %q", got, prefix)
		}
		if len(got) != len(prefix)+17 || len(got) > hashing.MaxNameLength {
			t.Fatalf("%q has %d bytes", got, len(got))
		}
		if rest := strings.Trim(got[len(prefix)+1:], "bcdfghjklmnpqrstvwxz2456789"); rest != "" {
			t.Fatalf("suffix of %q holds %q, outside the alphabet", got, rest)
		}
	})
}
