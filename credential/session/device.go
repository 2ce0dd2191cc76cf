package session

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Code is what a person enters in a browser, on any machine.
type Code struct {
	// User is the code, and At the page on which it is entered. Complete is that page with the code filled in; it may be
	// empty.
	User, At, Complete string
	// Ends is when the code ends.
	Ends time.Time
}

// deviceAnswer is the answer of a device authorization endpoint. Source: RFC 8628, section 3.2.
type deviceAnswer struct {
	Device   string `json:"device_code"`
	User     string `json:"user_code"`
	At       string `json:"verification_uri"`
	Complete string `json:"verification_uri_complete"`
	Seconds  int64  `json:"expires_in"`
	Interval int64  `json:"interval"`
}

const (
	// Patience is the longest that a sign-in waits for the person.
	Patience = 10 * time.Minute
	// usualInterval is the interval of questions where the provider names none, maxInterval the longest that is kept.
	usualInterval = 5
	maxInterval   = 60
	// maxFailures is how many questions in a row may go unanswered.
	maxFailures = 3
)

// ErrNoDevice reports a provider without codes for other machines.
var ErrNoDevice = errors.New("its document names no device_authorization_endpoint")

// ByCode signs in by a code that show gets, and waits until the person has entered it. Source: RFC 8628.
func (p *Provider) ByCode(ctx context.Context, show func(Code)) (*Session, error) {
	if p.document.Device == "" {
		return nil, fmt.Errorf("%s: %w", p.settings.Issuer, ErrNoDevice)
	}
	var given deviceAnswer
	if err := p.post(ctx, p.document.Device, url.Values{"scope": {p.scopes()}}, &given); err != nil {
		return nil, err
	}
	if err := given.judge(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.settings.Issuer, err)
	}
	life := Patience
	if given.Seconds > 0 && given.Seconds < int64(Patience/time.Second) {
		life = time.Duration(given.Seconds) * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(ctx, life, errCodeEnded)
	defer cancel()
	show(Code{User: given.User, At: given.At, Complete: given.Complete, Ends: time.Now().Add(life)})
	return p.await(ctx, &given)
}

var errCodeEnded = errors.New("nobody entered the code in time")

// judge returns an error if the answer cannot be shown to a person as it is. Codes are shown on terminals.
func (a *deviceAnswer) judge() error {
	odd := func(r rune) bool { return r < ' ' || r >= 0x7f }
	switch {
	case a.Device == "" || a.User == "" || len(a.User) > 64 || strings.ContainsFunc(a.User, odd):
		return fmt.Errorf("its user_code is %.80q: want up to 64 letters, digits and dashes", a.User)
	case !plainURL(a.At):
		return fmt.Errorf("its verification_uri is %.200q: want an https URL", a.At)
	case a.Complete != "" && !plainURL(a.Complete):
		return fmt.Errorf("its verification_uri_complete is %.200q: want an https URL", a.Complete)
	}
	return nil
}

// await asks for the tokens until the person has decided.
func (p *Provider) await(ctx context.Context, given *deviceAnswer) (*Session, error) {
	seconds := given.Interval
	if seconds <= 0 {
		seconds = usualInterval
	}
	failures := 0
	for {
		seconds = min(seconds, maxInterval)
		wait := time.NewTimer(time.Duration(seconds) * time.Second)
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil, context.Cause(ctx)
		case <-wait.C:
		}
		s, err := p.redeem(ctx, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"},
			"device_code": {given.Device}}, "")
		var refusal *RefusedError
		switch {
		case err == nil:
			return s, nil
		case errors.As(err, &refusal) && refusal.Code == "authorization_pending":
			failures = 0
		case errors.As(err, &refusal) && refusal.Code == "slow_down":
			failures = 0
			seconds += usualInterval
		case errors.As(err, &refusal):
			return nil, err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		default:
			if failures++; failures == maxFailures {
				return nil, err
			}
		}
	}
}
