package capture

import (
	"net/netip"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// ctOriginal is the direction of packets from the side that opened a connection (IP_CT_DIR_ORIGINAL).
const ctOriginal = 0

// expressions returns a rule in the form of the kernel.
func (r *rule) expressions() (out []expr.Any) {
	is := func(what expr.Any, op expr.CmpOp, value []byte) {
		out = append(out, what, &expr.Cmp{Op: op, Register: 1, Data: value})
	}
	if r.user != nil {
		is(&expr.Meta{Key: expr.MetaKeySKUID, Register: 1}, expr.CmpOpEq, binaryutil.NativeEndian.PutUint32(*r.user))
	}
	if r.notUser != nil {
		is(&expr.Meta{Key: expr.MetaKeySKUID, Register: 1}, expr.CmpOpNeq, binaryutil.NativeEndian.PutUint32(*r.notUser))
	}
	if r.outside {
		is(&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, expr.CmpOpNeq, []byte("lo\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	}
	if r.original {
		is(&expr.Ct{Key: expr.CtKeyDIRECTION, Register: 1}, expr.CmpOpEq, []byte{ctOriginal})
	}
	out = append(out, address(r.from, 12, 8)...)
	out = append(out, address(r.to, 16, 24)...)
	switch r.protocol {
	case tcp:
		is(&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, expr.CmpOpEq, []byte{unix.IPPROTO_TCP})
	case udp:
		is(&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, expr.CmpOpEq, []byte{unix.IPPROTO_UDP})
	}
	if r.ports != (Ports{}) {
		out = append(out, &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
		first, last := binaryutil.BigEndian.PutUint16(r.ports.First), binaryutil.BigEndian.PutUint16(r.ports.Last)
		if r.ports.First == r.ports.Last {
			out = append(out, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: first})
		} else {
			out = append(out, &expr.Range{Op: expr.CmpOpEq, Register: 1, FromData: first, ToData: last})
		}
	}
	if r.local {
		is(&expr.Fib{Register: 1, ResultADDRTYPE: true, FlagDADDR: true}, expr.CmpOpEq,
			binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL))
	}
	return append(out, r.ending()...)
}

// address returns the condition that an address is in a range. at4 and at6 are the offsets of the address in its
// header.
func address(in netip.Prefix, at4, at6 uint32) []expr.Any {
	if !in.IsValid() {
		return nil
	}
	family, at, size := byte(unix.NFPROTO_IPV4), at4, uint32(4)
	if in.Addr().Is6() {
		family, at, size = unix.NFPROTO_IPV6, at6, 16
	}
	mask := make([]byte, size)
	for i := range in.Bits() {
		mask[i/8] |= 0x80 >> (i % 8)
	}
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{family}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: at, Len: size},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: mask, Xor: make([]byte, size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: in.Masked().Addr().AsSlice()},
	}
}

// ending returns a rule's action for matching packets.
func (r *rule) ending() []expr.Any {
	switch {
	case r.verdict == redirect:
		return []expr.Any{
			&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(r.redirect)},
			&expr.Redir{RegisterProtoMin: 1},
		}
	case r.verdict == drop:
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}
	case r.verdict == refuse && r.protocol == tcp:
		return []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}
	case r.verdict == refuse:
		return []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}}
	}
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
}
