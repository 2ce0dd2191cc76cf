package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// serviceTraffic is the result of the policies of one type for the traffic to a service.
type serviceTraffic struct {
	Kind     resources.Type `json:"kind"`
	Rules    []trafficRule  `json:"rules"`
	Warnings []string       `json:"warnings,omitempty"`
}

// trafficRule is the conf for some callers.
type trafficRule struct {
	// KRI is the KRI of the service, with the port if the rule is for one port.
	KRI  string          `json:"kri"`
	Conf json.RawMessage `json:"conf"`
	// Merged are the items behind the conf, in order. The last one wins.
	Merged  []ruleOrigin `json:"merged"`
	Callers struct {
		Total int      `json:"total"`
		Items []string `json:"items"`
	} `json:"callers"`
}

// fetchTraffic reads `_policies` of the service.
func (v *serviceView) fetchTraffic(ctx context.Context, client *api.Client, service resources.Key) error {
	var answer struct {
		Callers  int              `json:"callers"`
		Policies []serviceTraffic `json:"policies"`
	}
	if err := fetch(ctx, client, service, "/_policies", &answer); err != nil {
		return aboutResource(service, err)
	}
	v.Callers, v.Traffic = answer.Callers, append([]serviceTraffic{}, answer.Policies...)
	return nil
}

// print writes which policies shape the traffic, for which callers, and why the winner wins.
func (t *serviceTraffic) print(w io.Writer, service string, callers int) {
	fmt.Fprintf(w, "\ntraffic to it  %s\n", t.Kind)
	for i := range t.Rules {
		rule := &t.Rules[i]
		fmt.Fprintf(w, "  %s\n", rule.who(service, callers))
		(&mergedRule{Conf: rule.Conf, Origins: rule.Merged}).print(w)
	}
	for _, warning := range t.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", warning)
	}
}

// who describes the callers: `port http, from 2 of 3 proxies: kri_dp_..., kri_dp_...`.
func (r *trafficRule) who(service string, callers int) string {
	text := ""
	if port := strings.TrimPrefix(r.KRI, service); port != "" && port != r.KRI {
		text = "port " + port + ", "
	}
	if r.Callers.Total == callers {
		if callers == 1 {
			return text + "from the only proxy: " + firstOf(r.Callers.Items, 3)
		}
		return text + fmt.Sprintf("from all %d proxies", callers)
	}
	return text + fmt.Sprintf("from %d of %d proxies: %s", r.Callers.Total, callers, firstOf(r.Callers.Items, 3))
}
