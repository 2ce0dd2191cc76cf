package nameserver

import (
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

var errMany = errors.New("more than one question")

// ttl is how long, in seconds, a resolver may cache an answer.
const ttl = 30

// table holds the addresses of each name, in lower case and without the final dot. A name without addresses is claimed
// by services of several meshes.
type table map[string][]netip.Addr

// answer returns the response to a query, in buffer; nil if there is none. ready means that the names are known.
func (t table) answer(buffer, query []byte, ready bool) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	q, err := p.Question()
	if err == nil {
		if _, more := p.Question(); more == nil {
			err = errMany
		}
	}
	out := dnsmessage.Header{ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, Authoritative: true}
	addresses := t[strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))]
	switch {
	case h.OpCode != 0:
		out.RCode = dnsmessage.RCodeNotImplemented
	case err != nil:
		out.RCode = dnsmessage.RCodeFormatError
	case q.Class != dnsmessage.ClassINET:
		out.RCode = dnsmessage.RCodeRefused
	case !ready:
		out.RCode = dnsmessage.RCodeServerFailure
	case len(addresses) == 0:
		out.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(buffer, out)
	b.EnableCompression()
	if err == nil && (b.StartQuestions() != nil || b.Question(q) != nil) {
		return nil
	}
	if out.RCode == dnsmessage.RCodeSuccess && addAnswers(&b, q, addresses) != nil {
		return nil
	}
	raw, err := b.Finish()
	if err != nil {
		return nil
	}
	return raw
}

// addAnswers adds the addresses of the requested family. A name without any gets an empty answer.
func addAnswers(b *dnsmessage.Builder, q dnsmessage.Question, addresses []netip.Addr) error {
	if err := b.StartAnswers(); err != nil {
		return err
	}
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: ttl}
	for _, ip := range addresses {
		var err error
		switch {
		case q.Type == dnsmessage.TypeA && ip.Is4():
			err = b.AResource(header, dnsmessage.AResource{A: ip.As4()})
		case q.Type == dnsmessage.TypeAAAA && ip.Is6():
			err = b.AAAAResource(header, dnsmessage.AAAAResource{AAAA: ip.As16()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
