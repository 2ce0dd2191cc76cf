package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/causeway-mesh/causeway/api"
)

// dryRun asks the server to evaluate documents without storing them.
func dryRun(ctx context.Context, client *api.Client, docs []document) (*api.Forecast, error) {
	f, err := client.DryRun(ctx, resourcesOf(docs)...)
	if err != nil {
		return nil, traced(docs, err)
	}
	if !f.DryRun || len(f.Results) != len(docs) {
		return nil, errors.New("the server did not answer as to a dry run; causewayctl get shows what is stored")
	}
	return f, nil
}

// doubtedForecast is a forecast for programs, with why it may not be true any more.
type doubtedForecast struct {
	*api.Forecast
	Warnings []string `json:"warnings,omitempty"`
}

// printForecast is printOutcomes for a dry run.
func (c *cli) printForecast(docs []document, f *api.Forecast) error {
	for i, item := range f.Results {
		for _, warning := range item.Warnings {
			fmt.Fprintf(c.errOut, "%s: warning: %s\n", docs[i], warning)
		}
	}
	return c.printAnswer(doubtedForecast{f, c.left.warnings()}, func() error {
		t := &table{header: []string{"TYPE", "RESOURCE", "WOULD BE", "ROLE", "SYNCED TO", proxiesHeader(f)}}
		if c.output == formatWide {
			t.header = append(t.header, "KRI", "FILE", "WHICH PROXIES")
		}
		for i, item := range f.Results {
			row := []string{
				string(item.Type), place(docs[i].resource.Key), item.Result, string(item.Role),
				syncedText(item.SyncedTo), proxiesCount(item.Proxies),
			}
			if c.output == formatWide {
				row = append(row, item.KRI, docs[i].String(), proxiesNames(item.Proxies))
			}
			t.add(row...)
		}
		return t.print(c.out)
	})
}

// proxiesHeader names the zone whose proxies are counted: a zone knows only its own.
func proxiesHeader(f *api.Forecast) string {
	for _, item := range f.Results {
		if item.Proxies != nil && item.Proxies.Zone != "" {
			return "PROXIES IN " + item.Proxies.Zone
		}
	}
	return "PROXIES"
}

func syncedText(servers []string) string {
	if len(servers) == 0 {
		return "nowhere"
	}
	return firstOf(servers, 8)
}

func proxiesCount(p *api.ForecastProxies) string {
	if p == nil {
		return ""
	}
	return fmt.Sprint(p.Total)
}

func proxiesNames(p *api.ForecastProxies) string {
	if p == nil {
		return ""
	}
	return firstOf(p.Items, 5)
}
