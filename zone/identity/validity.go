package identity

import (
	"maps"
	"time"
)

// mostMadeUp bounds how much a certificate's validity is extended because the clock was set back.
const mostMadeUp = 7 * 24 * time.Hour

// validity is the period in which a certificate is valid, by the wall clock.
type validity struct {
	issued, from, until, renew time.Time
	// leapt reports that it differs from the plain lifetime.
	leapt bool
}

// validity returns the period for a certificate that is signed now and replaces before, which is nil if there is none.
//
// The server cannot know whether its clock is right after it was set, or was right before. Peers that verify the
// certificate have clocks of their own. So if the clock has leapt since before was signed, the new certificate is also
// valid when before was: from its beginning if the clock went forward, or until its end, within mostMadeUp, if it went
// back.
func (a *Authority) validity(who *Assigned, before *SVID, now time.Time) validity {
	now = now.UTC().Truncate(time.Second) // certificates have whole seconds in UTC
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
	case now.Before(before.Issued()) && end.After(v.until) && end.Sub(v.until) <= mostMadeUp &&
		!end.After(a.cert.NotAfter):
		v.until, v.leapt = end, true
	}
	return v
}

// leaps remembers, by serial number, the certificates whose validity differs from their lifetime because the clock was
// set. It does so in this process, until they expire.
type leaps map[string]leap

type leap struct{ issued, renew, ends time.Time }

func (l leaps) add(s *SVID, now time.Time) {
	maps.DeleteFunc(l, func(_ string, one leap) bool { return now.After(one.ends) })
	l[s.Leaf.SerialNumber.String()] = leap{issued: s.issued, renew: s.RenewAt, ends: s.Leaf.NotAfter}
}

// restore gives a kept certificate the times that it was issued with.
func (l leaps) restore(s *SVID) {
	if one, there := l[s.Leaf.SerialNumber.String()]; there {
		s.issued, s.RenewAt, s.leapt = one.issued, one.renew, true
	}
}
