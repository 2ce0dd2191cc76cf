package identity

import (
	"maps"
	"time"
)

// mostMadeUp bounds how much longer than its life a certificate is valid because the clock was set back.
const mostMadeUp = 7 * 24 * time.Hour

// validity is when a certificate is good, by the wall clock.
type validity struct {
	issued, from, until, renew time.Time
	// leapt: it is not what the life alone would make it.
	leapt bool
}

// validity of a certificate that is signed now, and takes the place of before, nil for none.
//
// A clock may be set, and whether it is right then or was before, nobody here can tell. Those who are to believe the certificate have
// clocks of their own. So when the clock has leapt since before was signed, the next one is valid when before was, too: from its
// beginning where the clock went forward, and until its end, within mostMadeUp, where it went back.
func (a *Authority) validity(who *Assigned, before *SVID, now time.Time) validity {
	now = now.UTC().Truncate(time.Second) // as certificates have it
	v := validity{issued: now, from: now.Add(-skew), until: now.Add(who.Lifetime)}
	if v.until.After(a.cert.NotAfter) {
		v.until = a.cert.NotAfter
	}
	v.renew = now.Add(v.until.Sub(now) / 2)
	if before == nil || before.ID != who.ID {
		return v
	}
	switch begin, end := before.Leaf.NotBefore, before.Leaf.NotAfter; {
	case now.After(before.RenewAt.Add(skew)) && begin.Before(v.from):
		v.from, v.leapt = begin, true
	case now.Before(before.Issued()) && end.After(v.until) && end.Sub(v.until) <= mostMadeUp && !end.After(a.cert.NotAfter):
		v.until, v.leapt = end, true
	}
	return v
}

// leaps remembers certificates that are valid for other than their life because the clock was set, by serial number: in this process, until
// they end.
type leaps map[string]leap

type leap struct{ issued, renew, ends time.Time }

func (l leaps) add(s *SVID, now time.Time) {
	maps.DeleteFunc(l, func(_ string, one leap) bool { return now.After(one.ends) })
	l[s.Leaf.SerialNumber.String()] = leap{issued: s.issued, renew: s.RenewAt, ends: s.Leaf.NotAfter}
}

// restore gives a certificate that was kept the times that it was issued with.
func (l leaps) restore(s *SVID) {
	if one, there := l[s.Leaf.SerialNumber.String()]; there {
		s.issued, s.RenewAt, s.leapt = one.issued, one.renew, true
	}
}
