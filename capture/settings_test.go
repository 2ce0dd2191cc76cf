package capture_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/capture"
)

// TestRefusedSettings: what would not do what it says is refused before the kernel is asked.
func TestRefusedSettings(t *testing.T) {
	t.Parallel()
	one := []capture.Ports{{First: 80, Last: 80}}
	for name, s := range map[string]capture.Settings{
		"root":                {InboundPort: 15006},
		"nothing":             {ProxyUser: 1},
		"port are both 1":     {ProxyUser: 1, InboundPort: 1, OutboundPort: 1},
		"guarded ports with":  {ProxyUser: 1, OutboundPort: 1, GuardPorts: one},
		"both guarded and":    {ProxyUser: 1, InboundPort: 1, GuardPorts: one, ExcludeInboundPorts: one},
		"is not among":        {ProxyUser: 1, InboundPort: 1, GuardPorts: one, InboundPorts: []capture.Ports{{First: 81, Last: 90}}},
		"the proxy's own":     {ProxyUser: 1, InboundPort: 80, GuardPorts: one},
		"without an inbound":  {ProxyUser: 1, OutboundPort: 1, ExcludeInboundPorts: one},
		"without an outbound": {ProxyUser: 1, InboundPort: 1, ExcludeOutboundPorts: one},
		"prove nothing":       {ProxyUser: 1, OutboundPort: 1, ProofPort: 2, ProofTo: 3},
		"want both":           {ProxyUser: 1, InboundPort: 1, ProofPort: 2},
		"may listen on it":    {ProxyUser: 1, InboundPort: 1, ProofPort: 1, ProofTo: 3},
		"port 80 is the":      {ProxyUser: 1, InboundPort: 1, ProofPort: 80, ProofTo: 3, GuardPorts: one},
		"65 entries":          {ProxyUser: 1, InboundPort: 1, ExcludeInboundPorts: make([]capture.Ports, 65)},
	} {
		if _, err := capture.Install(s); !errors.Is(err, capture.ErrSettings) || !strings.Contains(err.Error(), name) &&
			name != "nothing" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "0", "65536", "10-9", "a", "1-", "-1", "1-2-3"} {
		if p, err := capture.ParsePorts(text); err == nil {
			t.Errorf("%q is %s", text, p)
		}
	}
	for text, want := range map[string]string{"10.1.2.3": "10.1.2.3/32", "10.1.2.3/8": "10.0.0.0/8", "fd00::1": "fd00::1/128",
		"::ffff:10.0.0.1": "10.0.0.1/32", "example.com": "", "10.0.0.0/33": "", "fe80::1%eth0": "", "::ffff:10.0.0.0/104": ""} {
		p, err := capture.ParsePrefix(text)
		if (err == nil) != (want != "") || err == nil && p.String() != want {
			t.Errorf("%q is %s, %v, want %q", text, p, err, want)
		}
	}
	if id, err := capture.LookupUser("root"); err != nil || id != 0 {
		t.Errorf("root is %d, %v", id, err)
	}
	if _, err := capture.LookupUser("no-such-user"); err == nil || !strings.Contains(err.Error(), "useradd") {
		t.Errorf("an unknown user: %v", err)
	}
}
