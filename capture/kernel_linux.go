package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	"golang.org/x/sys/unix"
)

const (
	tableName = "causeway_capture"
	// settingsChain holds the settings in comments of at most commentSize bytes each. No packet reaches it.
	settingsChain = "settings"
	commentSize   = 200
	// mark is the prefix of each rule's comment.
	mark = "causeway: "
	// roomOfRules is in bytes: 900 rules, the kernel's own account of them, and some.
	roomOfRules = 2 << 20
	// natPortGiven is NF_NAT_RANGE_PROTO_SPECIFIED.
	natPortGiven = 2
)

// Install replaces the capture in the network of the calling thread, atomically. It returns false if the same one was
// already installed. Connections that are open when a capture begins may break. Errors wrap ErrSettings, ErrNotAllowed
// or ErrNoNFT.
func Install(s Settings) (changed bool, err error) {
	if err := s.check(); err != nil {
		return false, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return false, err
	}
	before, err := Read()
	if err != nil {
		return false, err
	}
	if before.State == Installed {
		if had, err := json.Marshal(before.Settings); err == nil && bytes.Equal(had, text) {
			return false, nil
		}
	}
	c, err := nftables.New(nftables.WithSockOptions(roomy))
	if err != nil {
		return false, explained(err)
	}
	table := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName}
	c.AddTable(table) // so that there is one to delete
	c.DelTable(table)
	c.AddTable(table)
	note := c.AddChain(&nftables.Chain{Table: table, Name: settingsChain})
	for piece := range chunks(text) {
		c.AddRule(&nftables.Rule{Table: table, Chain: note, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}},
			UserData: userdata.AppendString(nil, userdata.TypeComment, piece)})
	}
	known := s.rules()
	for _, h := range hooks {
		rules := known[h]
		if len(rules) == 0 {
			continue
		}
		chain := c.AddChain(h.chain(table))
		for i := range rules {
			c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rules[i].expressions(),
				UserData: userdata.AppendString(nil, userdata.TypeComment, mark+rules[i].note)})
		}
	}
	if err := c.Flush(); err != nil {
		return false, explained(err)
	}
	return true, nil
}

// roomy gives a connection to the kernel room for the largest capture, which is one message, and for its answers.
func roomy[C interface {
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
}](c C) error {
	return errors.Join(c.SetReadBuffer(roomOfRules), c.SetWriteBuffer(roomOfRules))
}

func chunks(text []byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			n := min(len(text), commentSize)
			if !yield(string(text[:n])) {
				return
			}
			text = text[n:]
		}
	}
}

// chain returns the chain of a hook.
func (h hook) chain(table *nftables.Table) *nftables.Chain {
	accept := nftables.ChainPolicyAccept
	out := &nftables.Chain{Table: table, Name: h.String(), Policy: &accept, Type: nftables.ChainTypeNAT,
		Priority: nftables.ChainPriorityNATDest}
	switch h {
	case prerouting:
		out.Hooknum = nftables.ChainHookPrerouting
	case output:
		out.Hooknum = nftables.ChainHookOutput
	case guardInput, guardOutput:
		out.Type, out.Priority, out.Hooknum = nftables.ChainTypeFilter, nftables.ChainPriorityFilter, nftables.ChainHookInput
		if h == guardOutput {
			out.Hooknum = nftables.ChainHookOutput
		}
	}
	return out
}

// Uninstall removes a capture, complete or not, and nothing else. It returns false if there was none. Open connections
// stay with the proxy.
func Uninstall() (removed bool, err error) {
	c, table, err := find()
	if err != nil || table == nil {
		return false, err
	}
	c.DelTable(table)
	if err := c.Flush(); err != nil {
		return false, explained(err)
	}
	return true, nil
}

// find returns our table, nil if there is none.
func find() (*nftables.Conn, *nftables.Table, error) {
	c, err := nftables.New()
	if err != nil {
		return nil, nil, explained(err)
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, nil, explained(err)
	}
	for _, t := range tables {
		if t.Name == tableName {
			return c, t, nil
		}
	}
	return c, nil, nil
}

// Read compares the kernel's rules with those that Install wrote.
func Read() (*Status, error) {
	c, table, err := find()
	if err != nil {
		return nil, err
	}
	if table == nil {
		return &Status{State: Absent}, nil
	}
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return nil, explained(err)
	}
	is := reading{chains: map[string]*nftables.Chain{}, rules: map[string][]*nftables.Rule{}}
	for _, chain := range chains {
		if chain.Table.Name != tableName {
			continue
		}
		is.chains[chain.Name] = chain
		if is.rules[chain.Name], err = c.GetRules(table, chain); err != nil {
			return nil, explained(err)
		}
	}
	sets, err := c.GetSets(table)
	if err != nil {
		return nil, explained(err)
	}
	for _, set := range sets {
		is.foreign("a set %q that is not ours", set.Name)
	}
	return is.judge()
}

// reading is our table as the kernel has it.
type reading struct {
	chains map[string]*nftables.Chain
	rules  map[string][]*nftables.Rule
	status Status
}

func (r *reading) foreign(format string, args ...any) {
	r.status.State = Changed
	r.status.Problems = append(r.status.Problems, fmt.Sprintf(format, args...))
}

func (r *reading) missing(format string, args ...any) {
	if r.status.State != Changed {
		r.status.State = Partial
	}
	r.status.Problems = append(r.status.Problems, fmt.Sprintf(format, args...))
}

func (r *reading) judge() (*Status, error) {
	var text []byte
	for _, rule := range r.rules[settingsChain] {
		piece, _ := userdata.GetString(rule.UserData, userdata.TypeComment)
		text = append(text, piece...)
	}
	var s Settings
	if err := json.Unmarshal(text, &s); err != nil || s.check() != nil {
		r.foreign("the settings in chain %q are not readable", settingsChain)
		return &r.status, nil
	}
	r.status.Settings = &s
	known := s.rules()
	for _, h := range hooks {
		if len(known[h]) > 0 {
			r.compare(h, known[h])
		}
	}
	for name := range r.chains {
		if name != settingsChain && !expected(known, name) {
			r.foreign("chain %q is not ours", name)
		}
	}
	if r.status.State == "" {
		r.status.State = Installed
	}
	var err error
	r.status.Listeners, err = listeners(&s)
	return &r.status, err
}

func expected(known map[hook][]rule, chain string) bool {
	for h, rules := range known {
		if len(rules) > 0 && h.String() == chain {
			return true
		}
	}
	return false
}

// compare compares a chain with the wanted rules.
func (r *reading) compare(h hook, want []rule) {
	is, wanted := r.chains[h.String()], h.chain(nil)
	if is == nil {
		r.missing("chain %q is missing", h)
		return
	}
	if is.Type != wanted.Type || !reflect.DeepEqual(is.Hooknum, wanted.Hooknum) ||
		!reflect.DeepEqual(is.Priority, wanted.Priority) || !reflect.DeepEqual(is.Policy, wanted.Policy) {
		r.foreign("chain %q has another type, hook, priority or policy", h)
	}
	have := r.rules[h.String()]
	at := 0
	for i := range want {
		text := encoded(want[i].expressions())
		next := at
		for next < len(have) && encoded(have[next].Exprs) != text {
			next++
		}
		if next == len(have) {
			r.missing("chain %q lacks rule %d of %d (%s)", h, i+1, len(want), want[i].note)
			continue
		}
		for ; at < next; at++ {
			r.foreign("chain %q has a rule that is not ours, before rule %d", h, i+1)
		}
		at = next + 1
	}
	for ; at < len(have); at++ {
		r.foreign("chain %q has a rule that is not ours, at its end", h)
	}
}

// encoded returns expressions as comparable bytes. The kernel adds the implied fields of a redirect to one port.
func encoded(list []expr.Any) string {
	var out []byte
	for _, e := range list {
		if r, ok := e.(*expr.Redir); ok && (r.RegisterProtoMax == 0 || r.RegisterProtoMax == r.RegisterProtoMin) {
			e = &expr.Redir{RegisterProtoMin: r.RegisterProtoMin, Flags: r.Flags &^ natPortGiven}
		}
		raw, err := expr.Marshal(unix.NFPROTO_INET, e)
		if err != nil {
			return err.Error() // not equal to any of ours
		}
		out = append(out, raw...)
	}
	return string(out)
}

// explained adds advice to a kernel error.
func explained(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w (%w)", ErrNotAllowed, err)
	case errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOENT),
		errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("%w (%w)", ErrNoNFT, err)
	}
	return fmt.Errorf("nftables: %w", err)
}
