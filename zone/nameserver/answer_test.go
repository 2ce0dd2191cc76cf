package nameserver

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

var known = table{
	"backend.shop.svc.mesh.local": {netip.MustParseAddr("10.1.0.7"), netip.MustParseAddr("fd00::7")},
	"api.svc.zone-2.mesh.local":   {netip.MustParseAddr("241.64.0.1")},
	"both.mesh.local":             nil,
}

// query is a question as a resolver asks it, with EDNS.
func query(t testing.TB, name string, kind dnsmessage.Type, class dnsmessage.Class) []byte {
	t.Helper()
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: 7, RecursionDesired: true})
	var edns dnsmessage.ResourceHeader
	for _, err := range []error{b.StartQuestions(), b.Question(dnsmessage.Question{Name: dnsmessage.MustNewName(name), Type: kind, Class: class}),
		b.StartAdditionals(), edns.SetEDNS0(1232, dnsmessage.RCodeSuccess, false), b.OPTResource(edns, dnsmessage.OPTResource{})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	raw, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// text returns what a response says.
func text(t *testing.T, raw []byte) string {
	t.Helper()
	if raw == nil {
		return "nothing"
	}
	var m dnsmessage.Message
	if err := m.Unpack(raw); err != nil || !m.Response || m.ID != 7 {
		t.Fatalf("%v: %+v", err, m)
	}
	out := strings.TrimPrefix(m.RCode.String(), "RCode")
	for _, a := range m.Answers {
		switch body := a.Body.(type) {
		case *dnsmessage.AResource:
			out += fmt.Sprint(" ", netip.AddrFrom4(body.A), " ", a.Header.TTL)
		case *dnsmessage.AAAAResource:
			out += fmt.Sprint(" ", netip.AddrFrom16(body.AAAA), " ", a.Header.TTL)
		}
	}
	return out
}

// TestAnswers: a name that there is has an answer for each type, an empty one where it has none of that. Resolvers take
// "no such name" for an answer to all types, and some of them believe it more than an address.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		{"backend.shop.svc.mesh.local.", dnsmessage.TypeA, "Success 10.1.0.7 30"},
		{"BackEnd.Shop.svc.mesh.local.", dnsmessage.TypeA, "Success 10.1.0.7 30"},
		{"backend.shop.svc.mesh.local.", dnsmessage.TypeAAAA, "Success fd00::7 30"},
		{"api.svc.zone-2.mesh.local.", dnsmessage.TypeA, "Success 241.64.0.1 30"},
		{"api.svc.zone-2.mesh.local.", dnsmessage.TypeAAAA, "Success"},
		{"api.svc.zone-2.mesh.local.", dnsmessage.TypeTXT, "Success"},
		{"both.mesh.local.", dnsmessage.TypeA, "NameError"},
		{"nobody.mesh.local.", dnsmessage.TypeA, "NameError"},
		{".", dnsmessage.TypeNS, "NameError"},
	} {
		if got := text(t, known.answer(nil, query(t, c.name, c.kind, dnsmessage.ClassINET), true)); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.kind, c.name, got, c.want)
		}
	}
	good := query(t, "backend.shop.svc.mesh.local.", dnsmessage.TypeA, dnsmessage.ClassINET)
	if got := text(t, known.answer(nil, good, false)); got != "ServerFailure" {
		t.Errorf("before there are names: %s", got)
	}
	if got := text(t, known.answer(nil, query(t, "backend.shop.svc.mesh.local.", dnsmessage.TypeTXT, dnsmessage.ClassCHAOS), true)); got != "Refused" {
		t.Errorf("another class: %s", got)
	}
	change := func(at int, to byte) []byte {
		out := append([]byte{}, good...)
		out[at] = to
		return out
	}
	for what, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"a response":    {change(2, 0x80), "nothing"},
		"an update":     {change(2, 0x29), "NotImplemented"},
		"no question":   {change(5, 0), "FormatError"},
		"two questions": {change(5, 2), "FormatError"},
		"half a header": {good[:7], "nothing"},
		"half a name":   {good[:20], "FormatError"},
		"no bytes":      {nil, "nothing"},
	} {
		if got := text(t, known.answer(nil, c.raw, true)); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

// FuzzAnswer: whatever comes, what goes back is a response of the same ID, no longer than an answer may be.
func FuzzAnswer(f *testing.F) {
	f.Add(query(f, "backend.shop.svc.mesh.local.", dnsmessage.TypeA, dnsmessage.ClassINET))
	f.Add(query(f, "nobody.", dnsmessage.TypeAAAA, dnsmessage.ClassINET))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := known.answer(nil, raw, true)
		if got == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(got); err != nil || !m.Response || len(got) > maxAnswer || got[0] != raw[0] || got[1] != raw[1] {
			t.Errorf("%x: %x: %v", raw, got, err)
		}
	})
}
