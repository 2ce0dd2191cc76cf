package cluster

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// Verdict is an Envoy's decision about one request.
type Verdict struct {
	// Status is the HTTP status that the client received.
	Status int
	// DecidedBy is the KRI of the policy that decided, or "default", from the Envoy's counters. It is empty if nothing
	// was judged.
	DecidedBy string
}

// Allowed reports whether the request reached the application.
func (v Verdict) Allowed() bool { return v.Status == http.StatusOK }

// String returns the verdict as text: `allowed by kri_...`.
func (v Verdict) String() string {
	word := "denied"
	switch {
	case v.Allowed():
		word = "allowed"
	case v.Status != http.StatusForbidden:
		word = fmt.Sprintf("status %d", v.Status)
	}
	if v.DecidedBy == "" {
		return word
	}
	return word + " by " + v.DecidedBy
}

// policyStat matches Envoy's counters of enforced decisions, by policy of an HTTP inbound.
var policyStat = regexp.MustCompile(`^http\.self_inbound_dp_(.+)\.rbac\.policy\.(.+)\.(?:allowed|denied)$`)

// Judge lets the client call an HTTP inbound and determines from the Envoy's counters which policy decided. No other
// request may reach that inbound at the same time.
func (w *Workload) Judge(ctx context.Context, client *Client, inbound, path string) (Verdict, error) {
	before, err := w.policyCounts(ctx, inbound)
	if err != nil {
		return Verdict{}, err
	}
	status, _, err := client.Get(ctx, w.Inbound(inbound).Port, path)
	if err != nil {
		return Verdict{}, err
	}
	after, err := w.policyCounts(ctx, inbound)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Status: status}
	var decided []string
	for policy, n := range after {
		if n > before[policy] {
			decided = append(decided, policy)
		}
	}
	if len(decided) > 1 {
		return v, fmt.Errorf("one request to %s moved the counters of %s", inbound, strings.Join(decided, " and "))
	}
	v.DecidedBy = strings.Join(decided, "")
	return v, nil
}

func (w *Workload) policyCounts(ctx context.Context, inbound string) (map[string]uint64, error) {
	stats, err := w.Proxy.Stats(ctx, `\.rbac\.policy\.`)
	if err != nil {
		return nil, err
	}
	counts := map[string]uint64{}
	for name, n := range stats {
		if m := policyStat.FindStringSubmatch(name); m != nil && m[1] == inbound {
			counts[m[2]] += n
		}
	}
	return counts, nil
}
