package resources

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"
)

// BalancingConf is the `default` of a MeshLoadBalancingStrategy, in Kuma's format.
type BalancingConf struct {
	LoadBalancer *LoadBalancer `json:"loadBalancer,omitempty"`
	// HashPolicies select the parts of a request that RingHash and Maglev hash. They replace those of the LoadBalancer.
	HashPolicies      []HashPolicy       `json:"hashPolicies,omitempty"`
	LocalityAwareness *LocalityAwareness `json:"localityAwareness,omitempty"`
}

// Types of LoadBalancers.
const (
	BalanceRoundRobin   = "RoundRobin"
	BalanceLeastRequest = "LeastRequest"
	BalanceRandom       = "Random"
	BalanceRingHash     = "RingHash"
	BalanceMaglev       = "Maglev"
)

// LoadBalancer sets how the proxy chooses the endpoint of a request or connection. Type determines which of the other
// fields may be set.
type LoadBalancer struct {
	Type         string          `json:"type,omitempty"`
	RoundRobin   *struct{}       `json:"roundRobin,omitempty"`
	LeastRequest *LeastRequestBy `json:"leastRequest,omitempty"`
	Random       *struct{}       `json:"random,omitempty"`
	RingHash     *RingHashBy     `json:"ringHash,omitempty"`
	Maglev       *MaglevBy       `json:"maglev,omitempty"`
}

// LeastRequestBy compares ChoiceCount endpoints, 2 unless set. ActiveRequestBias concerns weights, which endpoints here
// do not have.
type LeastRequestBy struct {
	ChoiceCount       *uint32         `json:"choiceCount,omitempty"`
	ActiveRequestBias json.RawMessage `json:"activeRequestBias,omitempty" shape:"intOrString"`
}

// RingHashBy limits the ring, in entries. HashFunction is XXHash (the default) or MurmurHash2.
type RingHashBy struct {
	HashFunction string       `json:"hashFunction,omitempty"`
	MinRingSize  *uint32      `json:"minRingSize,omitempty"`
	MaxRingSize  *uint32      `json:"maxRingSize,omitempty"`
	HashPolicies []HashPolicy `json:"hashPolicies,omitempty"`
}

// MaglevBy sets the size of the table, a prime, 65537 unless set.
type MaglevBy struct {
	TableSize    *uint32      `json:"tableSize,omitempty"`
	HashPolicies []HashPolicy `json:"hashPolicies,omitempty"`
}

// Types of HashPolicies.
const (
	HashByHeader         = "Header"
	HashByCookie         = "Cookie"
	HashByConnection     = "Connection"
	HashBySourceIP       = "SourceIP"
	HashByQueryParameter = "QueryParameter"
	HashByFilterState    = "FilterState"
)

// HashPolicy is one input of the hash. Type names the other field that is set; a SourceIP needs none. A Terminal one
// that found a value is the last to be used.
type HashPolicy struct {
	Type           string           `json:"type,omitempty"`
	Terminal       *bool            `json:"terminal,omitempty"`
	Header         *HashHeader      `json:"header,omitempty"`
	Cookie         *HashCookie      `json:"cookie,omitempty"`
	Connection     *HashConnection  `json:"connection,omitempty"`
	QueryParameter *HashQuery       `json:"queryParameter,omitempty"`
	FilterState    *HashFilterState `json:"filterState,omitempty"`
}

// HashHeader is a header of the request.
type HashHeader struct {
	Name string `json:"name,omitempty"`
}

// HashCookie is a cookie; with a TTL, the proxy creates one for a client without it.
type HashCookie struct {
	Name string  `json:"name,omitempty"`
	TTL  *string `json:"ttl,omitempty"`
	Path *string `json:"path,omitempty"`
}

// HashConnection is the client's address.
type HashConnection struct {
	SourceIP bool `json:"sourceIP,omitempty"`
}

// HashQuery is a parameter of the request's query.
type HashQuery struct {
	Name string `json:"name,omitempty"`
}

// HashFilterState is an object that an Envoy filter stored.
type HashFilterState struct {
	Key string `json:"key,omitempty"`
}

// MostOfOthers is the largest ring or table of a producer's policy, in entries: Maglev's usual size. The proxies of the
// service's clients build it, one for each cluster, and a ring of Envoy's own limit takes 200 MiB.
const MostOfOthers = 65_537

// Limits of what Envoy accepts.
const (
	maxRingSize      = 8 << 20
	maxTableSize     = 5_000_011
	maxHashPolicies  = 16
	maxHashNameBytes = 256
)

var (
	balancers = []string{BalanceRoundRobin, BalanceLeastRequest, BalanceRandom, BalanceRingHash, BalanceMaglev}
	hashTypes = []string{HashByHeader, HashByCookie, HashByConnection, HashBySourceIP, HashByQueryParameter,
		HashByFilterState}
	hashFunctions = []string{"", "XXHash", "MurmurHash2"}
)

// balancing checks a MeshLoadBalancingStrategy. The code that configures proxies skips what a peer sent and Envoy
// rejects.
func (v *validation) balancing(c *BalancingConf, at *fieldPath) {
	if v.peer {
		return
	}
	v.hashPolicies(c.HashPolicies, at.field("hashPolicies"))
	if b := c.LoadBalancer; b != nil {
		v.balancer(b, at.field("loadBalancer"))
		v.tableOfOthers(b, at.field("loadBalancer"))
	}
	if l := c.LocalityAwareness; l != nil {
		v.locality(l, at.field("localityAwareness"))
	}
}

func (v *validation) balancer(b *LoadBalancer, at *fieldPath) {
	if !slices.Contains(balancers, b.Type) {
		v.fail(at.field("type"), "want one of %s, got %q", strings.Join(balancers, ", "), shorten(b.Type))
		return
	}
	for _, one := range []struct {
		typ, field string
		set        bool
	}{
		{BalanceRoundRobin, "roundRobin", b.RoundRobin != nil}, {BalanceLeastRequest, "leastRequest", b.LeastRequest != nil},
		{BalanceRandom, "random", b.Random != nil}, {BalanceRingHash, "ringHash", b.RingHash != nil},
		{BalanceMaglev, "maglev", b.Maglev != nil},
	} {
		if one.set && one.typ != b.Type {
			v.fail(at.field(one.field), "does not belong to a load balancer of type %s", b.Type)
		}
	}
	if l := b.LeastRequest; l != nil && l.ChoiceCount != nil && (*l.ChoiceCount < 2 || *l.ChoiceCount > MostRepeats) {
		v.fail(at.field("leastRequest").field("choiceCount"), "want 2 to %d, got %d", MostRepeats, *l.ChoiceCount)
	}
	if r := b.RingHash; r != nil {
		v.ringHash(r, at.field("ringHash"))
	}
	if m := b.Maglev; m != nil {
		if !MaglevTable(m.TableSize) {
			v.fail(at.field("maglev").field("tableSize"), "want a prime of at most %d, got %d", maxTableSize, *m.TableSize)
		}
		v.hashPolicies(m.HashPolicies, at.field("maglev").field("hashPolicies"))
	}
}

func (v *validation) ringHash(r *RingHashBy, at *fieldPath) {
	if !slices.Contains(hashFunctions, r.HashFunction) {
		v.fail(at.field("hashFunction"), "want XXHash or MurmurHash2, got %q", shorten(r.HashFunction))
	}
	if !RingSizes(r.MinRingSize, r.MaxRingSize) {
		v.fail(at, "want minRingSize and maxRingSize from 1 to %d, minRingSize at most maxRingSize; the defaults are 1024 and %d", maxRingSize, maxRingSize)
	}
	v.hashPolicies(r.HashPolicies, at.field("hashPolicies"))
}

// tableOfOthers refuses a large ring or table in a producer's policy: the proxies of the service's clients build it.
func (v *validation) tableOfOthers(b *LoadBalancer, at *fieldPath) {
	if RoleOf(v.resource, v.home.systemNamespace()) != RoleProducer {
		return
	}
	const why = "want at most %d, got %d: each proxy of the service's clients builds it: have the operator write a larger one"
	bound := func(size *uint32, at *fieldPath) {
		if size != nil && *size > MostOfOthers {
			v.fail(at, why, MostOfOthers, *size)
		}
	}
	if r := b.RingHash; r != nil {
		bound(r.MinRingSize, at.field("ringHash").field("minRingSize"))
		bound(r.MaxRingSize, at.field("ringHash").field("maxRingSize"))
	}
	if m := b.Maglev; m != nil {
		bound(m.TableSize, at.field("maglev").field("tableSize"))
	}
}

// RingSizes reports whether Envoy accepts the bounds of a ring.
func RingSizes(least, most *uint32) bool {
	from, to := uint32(1024), uint32(maxRingSize)
	if least != nil {
		from = *least
	}
	if most != nil {
		to = *most
	}
	return from >= 1 && from <= to && to <= maxRingSize
}

// MaglevTable reports whether Envoy accepts the size of a table.
func MaglevTable(size *uint32) bool {
	return size == nil || *size <= maxTableSize && big.NewInt(int64(*size)).ProbablyPrime(0)
}

func (v *validation) hashPolicies(all []HashPolicy, at *fieldPath) {
	if len(all) > maxHashPolicies {
		v.fail(at, "want at most %d, got %d", maxHashPolicies, len(all))
	}
	for i := range all {
		if field, problem := all[i].Problem(); problem != "" {
			inside := at.item(i)
			for name := range strings.SplitSeq(field, ".") {
				inside = inside.field(name)
			}
			v.fail(inside, "%s", problem)
		}
	}
}

// Problem returns the problem of one hash policy, and its field, with dots. Both are empty if there is none.
func (h *HashPolicy) Problem() (field, problem string) {
	named := func(field, name string) (string, string) {
		if name == "" || len(name) > maxHashNameBytes {
			return field, "want 1 to 256 bytes"
		}
		return "", ""
	}
	switch h.Type {
	case HashByHeader:
		if h.Header == nil || !headerName.MatchString(h.Header.Name) && !strings.HasPrefix(h.Header.Name, ":") {
			return "header.name", "want the name of a header"
		}
		return named("header.name", h.Header.Name)
	case HashByCookie:
		if h.Cookie == nil {
			return "cookie.name", "is required"
		}
		if h.Cookie.TTL != nil {
			if d, err := time.ParseDuration(*h.Cookie.TTL); err != nil || d < 0 {
				return "cookie.ttl", "want a duration such as 1h"
			}
		}
		return named("cookie.name", h.Cookie.Name)
	case HashByConnection:
		if h.Connection == nil || !h.Connection.SourceIP {
			return "connection.sourceIP", "want true"
		}
	case HashBySourceIP:
	case HashByQueryParameter:
		if h.QueryParameter == nil {
			return "queryParameter.name", "is required"
		}
		return named("queryParameter.name", h.QueryParameter.Name)
	case HashByFilterState:
		if h.FilterState == nil {
			return "filterState.key", "is required"
		}
		return named("filterState.key", h.FilterState.Key)
	default:
		return "type", "want one of " + strings.Join(hashTypes, ", ") + ", got \"" + shorten(h.Type) + "\""
	}
	return "", ""
}
