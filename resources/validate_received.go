package resources

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// minRateInterval is the shortest interval at which a proxy refills its token bucket.
const minRateInterval = 50 * time.Millisecond

// rateLimit checks that a rate has both of its fields, because merging half of one rate with half of another makes no
// sense.
func (v *validation) rateLimit(c *RateLimitConf, at *fieldPath) {
	if c.Local == nil {
		if !v.peer {
			v.fail(at.field("local"), "is required")
		}
		return
	}
	at = at.field("local")
	if http := c.Local.HTTP; http != nil {
		v.rate(http.RequestRate, at.field("http").field("requestRate"))
		v.onRateLimit(http.OnRateLimit, at.field("http").field("onRateLimit"))
	}
	if tcp := c.Local.TCP; tcp != nil {
		v.rate(tcp.ConnectionRate, at.field("tcp").field("connectionRate"))
	}
	if c.Local.HTTP == nil && c.Local.TCP == nil && !v.peer {
		v.fail(at, "is empty: give http or tcp")
	}
}

func (v *validation) rate(r *Rate, at *fieldPath) {
	if r == nil {
		return
	}
	switch {
	case r.Num == nil:
		v.fail(at.field("num"), "is required")
	case *r.Num == 0:
		v.fail(at.field("num"), "must be more than 0")
	}
	if r.Interval == nil {
		v.fail(at.field("interval"), "is required")
		return
	}
	v.duration(r.Interval, at.field("interval"), false)
	if d, err := time.ParseDuration(*r.Interval); err == nil && d >= 0 && d < minRateInterval {
		v.fail(at.field("interval"), "want at least %s, got %s", minRateInterval, shorten(*r.Interval))
	}
}

func (v *validation) onRateLimit(o *OnRateLimit, at *fieldPath) {
	if o == nil {
		return
	}
	if o.Status != nil && (*o.Status < 400 || *o.Status > 599 || http.StatusText(int(*o.Status)) == "") {
		v.fail(at.field("status"), "want a registered HTTP status from 400 to 599, got %d", *o.Status)
	}
	v.headerChanges(o.Headers, at.field("headers"))
}

// headerChanges checks the headers that a proxy writes. h may be nil.
func (v *validation) headerChanges(h *HeaderChanges, at *fieldPath) {
	if h == nil {
		return
	}
	for name, headers := range map[string][]HeaderValue{"set": h.Set, "add": h.Add} {
		v.headerCount(headers, at.field(name))
		for i := range headers {
			v.header(&headers[i], at.field(name).item(i))
		}
	}
}

// maxHeaderChanges bounds each list of HeaderChanges.
const maxHeaderChanges = 64

func (v *validation) headerCount(headers []HeaderValue, at *fieldPath) {
	if len(headers) > maxHeaderChanges {
		v.fail(at, "want at most %d, got %d", maxHeaderChanges, len(headers))
	}
}

func (v *validation) header(h *HeaderValue, at *fieldPath) {
	if !WritableHeader(h.Name) {
		v.fail(at.field("name"), "%q is not the name of a header that may be written", shorten(h.Name))
	}
	if !HeaderText(h.Value) {
		v.fail(at.field("value"), "want at most 4096 bytes in one line")
	}
}

// WritableHeader reports whether a proxy may write a header of this name.
func WritableHeader(name string) bool {
	return headerName.MatchString(name) && !strings.EqualFold(name, "host")
}

// MatchableHeader reports whether Envoy accepts the name of a header, or pseudo-header, to match.
func MatchableHeader(name string) bool { return headerName.MatchString(strings.TrimPrefix(name, ":")) }

// HeaderText reports whether Envoy accepts a text as the value of a header.
func HeaderText(text string) bool { return !strings.ContainsAny(text, "\x00\r\n") && len(text) <= 4096 }

// faultInjection checks that there is only one fault, because a proxy has only one fault filter.
func (v *validation) faultInjection(c *FaultInjectionConf, at *fieldPath) {
	if v.peer {
		return // the code that uses a peer's faults decides which it supports
	}
	at = at.field("http")
	switch {
	case len(c.HTTP) == 0:
		v.fail(at, "is required")
	case len(c.HTTP) > 1:
		v.fail(at.item(1),
			"only one item takes effect: put abort, delay and responseBandwidth into it, or write rules with matches")
	}
	for i := range c.HTTP {
		v.fault(&c.HTTP[i], at.item(i))
	}
}

func (v *validation) fault(f *Fault, at *fieldPath) {
	if f.Abort == nil && f.Delay == nil && f.ResponseBandwidth == nil {
		v.fail(at, "is empty: give abort, delay or responseBandwidth")
	}
	if a := f.Abort; a != nil {
		switch at := at.field("abort").field("httpStatus"); {
		case a.HTTPStatus == nil:
			v.fail(at, "is required: want 200 to 599")
		case *a.HTTPStatus < 200 || *a.HTTPStatus > 599:
			v.fail(at, "want 200 to 599, got %d", *a.HTTPStatus)
		}
		v.percentage(a.Percentage, at.field("abort").field("percentage"))
	}
	if d := f.Delay; d != nil {
		if d.Value == nil {
			v.fail(at.field("delay").field("value"), "is required")
		}
		v.duration(d.Value, at.field("delay").field("value"), true)
		v.percentage(d.Percentage, at.field("delay").field("percentage"))
	}
	if b := f.ResponseBandwidth; b != nil {
		if b.Limit == nil {
			v.fail(at.field("responseBandwidth").field("limit"), "is required")
		} else if _, err := ParseBandwidth(*b.Limit); err != nil {
			v.fail(at.field("responseBandwidth").field("limit"), "%v", err)
		}
		v.percentage(b.Percentage, at.field("responseBandwidth").field("percentage"))
	}
}

func (v *validation) percentage(raw json.RawMessage, at *fieldPath) {
	if len(raw) == 0 {
		v.fail(at, "is required")
		return
	}
	if _, err := ParsePercentage(raw); err != nil {
		v.fail(at, "%v", err)
	}
}

// ParsePercentage parses a number from 0 to 100, or a string that contains one.
func ParsePercentage(raw json.RawMessage) (float64, error) {
	text := string(raw)
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		text = quoted
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= 100) {
		return 0, fmt.Errorf("%q is not a number from 0 to 100", shorten(text))
	}
	return n, nil
}

var bandwidth = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([kMG]?)bps$`)

// ParseBandwidth parses a bandwidth such as `50Mbps` and returns bits per second.
func ParseBandwidth(s string) (float64, error) {
	parts := bandwidth.FindStringSubmatch(s)
	if parts == nil {
		return 0, fmt.Errorf("%q is not a bandwidth: write 500kbps or 1.5Mbps", shorten(s))
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	if err != nil || n <= 0 || n > 1e6 {
		return 0, fmt.Errorf("%q is not a bandwidth: the number must be more than 0 and at most 1000000", shorten(s))
	}
	return n * map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[parts[2]], nil
}

// receivedMatch checks a match of requests. The proxy's route selects the conf by its matches, and a route does not see
// the server name.
func (v *validation) receivedMatch(m *PermissionMatch, at *fieldPath) {
	v.permissionMatch(m, at)
	if m.SNI != nil {
		v.fail(at.field("sni"), "a %s cannot match requests by it: use spiffeId, path and method", v.resource.Type)
	}
}
