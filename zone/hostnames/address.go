package hostnames

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/reach"
)

// firstOctet is the first octet of MeshServices' addresses; those of the other kinds follow. Source: Kuma's ranges.
const firstOctet = 241

// maxAddresses limits the addresses of a service: one of each family is usual.
const maxAddresses = 4

// address gives each service an address derived from its KRI. If two have the same one, the service of an operator
// keeps it, else that of an owner in this zone, else the older one, and the other gets another. Service names can be
// chosen freely, and so can their hashes.
func (n *Names) address() {
	order := slices.Clone(n.Services)
	slices.SortFunc(order, func(a, b *Service) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), near(a, b), a.Resource.CreationTime.Compare(b.Resource.CreationTime),
			strings.Compare(a.KRI.String(), b.KRI.String()))
	})
	taken := make(map[netip.Addr]bool, len(order))
	for _, s := range order {
		for try := 0; ; try++ {
			if at := addressOf(s, try); !taken[at] {
				s.VIP, taken[at] = at, true
				break
			}
		}
	}
}

// near orders services of this zone and of the global before others.
func near(a, b *Service) int {
	switch {
	case a.far == b.far:
		return 0
	case b.far:
		return -1
	}
	return 1
}

// addressOf returns the address of a service at a try. The second octet also distinguishes the kinds, so that Loopback
// does, and it avoids 127.0, where machines have their own addresses. The last octet is never that of a network or
// broadcast address.
func addressOf(s *Service, try int) netip.Addr {
	text := s.KRI.String()
	if try > 0 {
		text += "#" + strconv.Itoa(try)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // a hash never fails
	sum := h.Sum64()
	sum ^= sum >> 32
	kind := byte(max(slices.Index(kinds, s.Resource.Type), 0))
	return netip.AddrFrom4([4]byte{firstOctet + kind, 64*(kind+1) + byte(sum>>16&63), byte(sum >> 8), 1 + byte(sum%254)})
}

// Loopback returns the loopback address that replaces a VIP on a machine without traffic capture.
func Loopback(vip netip.Addr) netip.Addr {
	raw := vip.As4()
	raw[0] = 127
	return netip.AddrFrom4(raw)
}

// ownAddresses returns the addresses in the status of a service of this zone, which only the server writes.
func ownAddresses(r *resources.Resource) (out []netip.Addr) {
	var status struct {
		VIPs []vipStatus `json:"vips"`
	}
	if len(r.Status) == 0 || json.Unmarshal(r.Status, &status) != nil {
		return nil
	}
	never := append(reach.NeverPassed(), Ranges()...)
	for _, vip := range status.VIPs {
		at, err := netip.ParseAddr(vip.IP)
		if at = at.Unmap(); err == nil && len(out) < maxAddresses && !slices.Contains(out, at) &&
			!slices.ContainsFunc(never, func(p netip.Prefix) bool { return p.Contains(at) }) {
			out = append(out, at)
		}
	}
	return out
}

// ClusterAddresses returns the addresses for a service's names where the cluster's resolver answers: those that the
// platform assigned in this zone, which others reach too, or else the one that proxies listen on.
func (s *Service) ClusterAddresses() []netip.Addr {
	if len(s.Addresses) > 0 {
		return s.Addresses
	}
	return []netip.Addr{s.VIP}
}

// Ranges returns the ranges of VIPs.
func Ranges() []netip.Prefix {
	var out []netip.Prefix
	for i := range kinds {
		out = append(out, netip.PrefixFrom(netip.AddrFrom4([4]byte{firstOctet + byte(i)}), 8))
	}
	return out
}

// Kinds returns the types of services that have names. The caller owns the slice.
func Kinds() []resources.Type { return slices.Clone(kinds) }
