package capture_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/causeway-mesh/causeway/capture"
)

// TestStatus: it is installed, partly there, changed by somebody or absent, and others' rules stay as they are.
func TestStatus(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	if m == nil {
		return
	}
	conn := func() (c *nftables.Conn) {
		m.do(func() {
			var err error
			if c, err = nftables.New(); err != nil {
				t.Error(err)
			}
		})
		return c
	}
	flush := func(c *nftables.Conn) {
		t.Helper()
		m.do(func() {
			if err := c.Flush(); err != nil {
				t.Error(err)
			}
		})
	}
	others := conn()
	theirs := others.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "theirs"})
	others.AddChain(&nftables.Chain{Name: "output", Table: theirs, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter})
	flush(others)
	tables := func() (out []string) {
		m.do(func() {
			list, err := others.ListTables()
			if err != nil {
				t.Error(err)
			}
			for _, table := range list {
				out = append(out, table.Name)
			}
		})
		slices.Sort(out)
		return out
	}
	state := func(name string, want capture.State) *capture.Status {
		t.Helper()
		s := m.status()
		if s.State != want || (len(s.Problems) > 0) != (want == capture.Partial || want == capture.Changed) {
			t.Errorf("%s: %s, %q, want %s", name, s.State, s.Problems, want)
		}
		return s
	}
	state("nothing", capture.Absent)
	if m.uninstall() {
		t.Error("nothing was removed")
	}
	full := capture.Settings{InboundPort: 15006, OutboundPort: 15001, DNSPort: 15053, ProofPort: 15023, ProofTo: 15021,
		InboundPorts:        []capture.Ports{{First: 1000, Last: 2000}, {First: 80, Last: 80}},
		ExcludeInboundPorts: []capture.Ports{{First: 22, Last: 22}}, GuardPorts: []capture.Ports{{First: 80, Last: 80}},
		ExcludeOutboundPorts: []capture.Ports{{First: 5678, Last: 5685}}, ExcludeUsers: []uint32{otherUser},
		ExcludeOutboundAddresses: []netip.Prefix{netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10")},
		ExcludeInboundAddresses:  []netip.Prefix{netip.MustParsePrefix("10.0.0.0/9")}}
	for i := range 60 {
		full.ExcludeOutboundPorts = append(full.ExcludeOutboundPorts, capture.Ports{First: uint16(20000 + i), Last: uint16(20000 + i)})
	}
	if !m.install(full) {
		t.Error("the first installation changed nothing")
	}
	if s := state("installed", capture.Installed); s.Settings == nil || len(s.Settings.ExcludeOutboundPorts) != 61 {
		t.Errorf("settings are %+v", s.Settings)
	}
	if m.install(full) {
		t.Error("the second installation changed something")
	}
	if !m.install(both) {
		t.Error("another installation changed nothing")
	}
	state("others", capture.Installed)

	ours := &nftables.Table{Family: nftables.TableFamilyINet, Name: "causeway_capture"}
	chain := &nftables.Chain{Name: "output", Table: ours}
	for name, tt := range map[string]struct {
		change func(*nftables.Conn, []*nftables.Rule)
		want   capture.State
	}{
		"a rule less": {func(c *nftables.Conn, r []*nftables.Rule) { _ = c.DelRule(r[len(r)-1]) }, capture.Partial},
		"a chain less": {func(c *nftables.Conn, _ []*nftables.Rule) {
			c.FlushChain(chain)
			c.DelChain(chain)
		}, capture.Partial},
		"a rule more": {func(c *nftables.Conn, _ []*nftables.Rule) {
			c.InsertRule(&nftables.Rule{Table: ours, Chain: chain, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}})
		}, capture.Changed},
		"a rule at the end": {func(c *nftables.Conn, r []*nftables.Rule) {
			c.AddRule(&nftables.Rule{Table: ours, Chain: chain, Exprs: r[0].Exprs})
		}, capture.Changed},
		"another rule": {func(c *nftables.Conn, r []*nftables.Rule) {
			r[0].Exprs, r[0].Table = []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}, ours
			c.ReplaceRule(r[0])
		}, capture.Changed},
		"a chain more": {func(c *nftables.Conn, _ []*nftables.Rule) {
			c.AddChain(&nftables.Chain{Table: ours, Name: "mine"})
		}, capture.Changed},
		"a set": {func(c *nftables.Conn, _ []*nftables.Rule) {
			_ = c.AddSet(&nftables.Set{Table: ours, Name: "mine", KeyType: nftables.TypeInetService}, nil)
		}, capture.Changed},
		"no settings": {func(c *nftables.Conn, _ []*nftables.Rule) {
			c.FlushChain(&nftables.Chain{Table: ours, Name: "settings"})
		}, capture.Changed},
	} {
		c := conn()
		var rules []*nftables.Rule
		m.do(func() { rules, _ = c.GetRules(ours, chain) })
		for _, r := range rules {
			r.Chain = chain
		}
		tt.change(c, rules)
		flush(c)
		state(name, tt.want)
		if !m.install(both) {
			t.Errorf("%s: installing repairs nothing", name)
		}
		state(name+", repaired", capture.Installed)
	}
	if got := fmt.Sprint(tables()); got != "[causeway_capture theirs]" {
		t.Errorf("tables are %s", got)
	}
	if !m.uninstall() {
		t.Error("nothing was removed")
	}
	state("uninstalled", capture.Absent)
	if got := fmt.Sprint(tables()); got != "[theirs]" {
		t.Errorf("tables are %s", got)
	}
}
