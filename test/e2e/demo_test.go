package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestDemo runs the demo as `make demo ONCE=1` does. Its status reports whether all rows were as expected.
func TestDemo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, programs.demo, "-once", "-bin", programs.bin, "-envoy", programs.envoy)
	cmd.Env = append(cmd.Environ(), "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the demo ended with %v:\n%s", err, out)
	}
	for _, want := range []string{
		"kri_mtp_default___by-mesh-operator_", "CHANGED ON THE GLOBAL", "producer-timeout-", "not there",
		"the consumer's policy of zone-2 beats it",
		"Why 403?", "kri_mtp_default_zone-1_backend-ns_without-zone-2_: not safe to enforce: ",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in what it printed:\n%s", want, out)
		}
	}
}
