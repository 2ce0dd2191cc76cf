package xds

import (
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// TestDurationsOfMergedConfs: policies that are merged may say what one alone may not, and an earlier version or a peer
// may have stored it: Envoy takes what the proxy is sent, and it is nearest to what was asked.
func TestDurationsOfMergedConfs(t *testing.T) {
	t.Parallel()
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	for _, c := range []struct{ base, most, first, longest string }{
		{"", "", "", ""}, {"0s", "", "", ""}, {"10ms", "", "10ms", ""}, {"", "10ms", "10ms", "10ms"}, {"", "1s", "25ms", "1s"},
		{"2s", "1s", "1s", "1s"}, {"1s", "2s", "1s", "2s"}, {"0s", "1s", "25ms", "1s"},
	} {
		got := backOff(period(text(c.base)), period(text(c.most)))
		if c.first == "" {
			if got != nil {
				t.Errorf("%v: %v", c, got)
			}
			continue
		}
		first, longest := got.GetBaseInterval().AsDuration().String(), ""
		if got.GetMaxInterval() != nil {
			longest = got.GetMaxInterval().AsDuration().String()
		}
		if first != c.first || longest != c.longest || got.Validate() != nil {
			t.Errorf("%v: first %s, longest %s, %v", c, first, longest, got.Validate())
		}
	}
	for _, c := range []struct{ interval, base, most, sweeps, first, longest string }{
		{"1ms", "", "", "100ms", "", ""}, {"100ms", "", "", "100ms", "", ""}, {"3s", "", "", "3s", "", ""},
		{"", "", "10s", "", "10s", "10s"}, {"", "", "1m", "", "30s", "1m0s"}, {"", "1m", "10s", "", "1m0s", "1m0s"},
		{"", "5s", "10s", "", "5s", "10s"}, {"", "5s", "", "", "5s", ""},
	} {
		got := outliers(&resources.OutlierDetection{Interval: text(c.interval), BaseEjectionTime: text(c.base), MaxEjectionTime: text(c.most)})
		for field, pair := range map[string][2]string{
			"interval":         {said(got.GetInterval() != nil, got.GetInterval().AsDuration()), c.sweeps},
			"baseEjectionTime": {said(got.GetBaseEjectionTime() != nil, got.GetBaseEjectionTime().AsDuration()), c.first},
			"maxEjectionTime":  {said(got.GetMaxEjectionTime() != nil, got.GetMaxEjectionTime().AsDuration()), c.longest},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%v: %s %s, want %s", c, field, pair[0], pair[1])
			}
		}
	}
}

func said(is bool, d time.Duration) string {
	if !is {
		return ""
	}
	return d.String()
}
