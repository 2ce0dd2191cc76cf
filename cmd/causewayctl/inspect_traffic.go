package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/inspect"
)

// serviceTraffic is the result of the policies of one type for the traffic to a service.
type serviceTraffic inspect.ServicePolicy

// fetchTraffic reads `_policies` of the service.
func (v *serviceView) fetchTraffic(ctx context.Context, client *api.Client, service resources.Key) error {
	var answer inspect.ServicePolicies
	if err := fetch(ctx, client, service, "/_policies", &answer); err != nil {
		return aboutResource(service, err)
	}
	v.Callers, v.Traffic = answer.Callers, []serviceTraffic{}
	for _, t := range answer.Policies {
		v.Traffic = append(v.Traffic, serviceTraffic(t))
	}
	return nil
}

// print writes which policies shape the traffic, for which callers, and why the winner wins.
func (t *serviceTraffic) print(w io.Writer, service string, callers int) {
	fmt.Fprintf(w, "\ntraffic to it  %s\n", t.Kind)
	for i := range t.Rules {
		rule := &t.Rules[i]
		fmt.Fprintf(w, "  %s\n", callersText(rule, service, callers))
		(&mergedRule{conf: onlyConf(rule.Conf), origins: rule.Merged}).print(w)
	}
	for _, warning := range t.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", warning)
	}
}

// callersText describes the callers: `port http, from 2 of 3 proxies: kri_dp_..., kri_dp_...`.
func callersText(r *inspect.ServiceRule, service string, callers int) string {
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

// onlyConf returns the conf of a list of one.
func onlyConf(confs []json.RawMessage) json.RawMessage {
	if len(confs) == 0 {
		return nil
	}
	return confs[0]
}
