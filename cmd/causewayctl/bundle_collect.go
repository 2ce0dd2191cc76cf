package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/server"
)

const (
	// maxLogTail limits how much of the end of a log is collected, in bytes.
	maxLogTail = 4 << 20
	// maxConfig limits the size of the settings file, in bytes.
	maxConfig = 1 << 20
)

// collect requests everything, one item after another. It fails only if the server does not respond at all.
func (c *cli) collect(ctx context.Context, client *api.Client, flags *bundleFlags) (*bundle, error) {
	b := &bundle{missing: map[string]string{}}
	info, err := fetchInfo(ctx, client)
	if err != nil {
		return nil, err
	}
	b.addJSON("version.json", map[string]any{"client": server.Version(), "server": info}, nil)
	c.waiting.say("running doctor")
	diagnosis, err := c.diagnose(ctx, client, &doctorFlags{diagnostics: flags.diagnostics})
	b.addJSON("doctor.json", diagnosis, err)
	if err := c.collectDiagnostics(ctx, b, flags.diagnostics); err != nil {
		return nil, err
	}
	for name, path := range map[string]string{"types.json": "/_resources", "insight.json": "/global-insight",
		"keys.json": "/_keys", "adoptions.json": "/_adoptions"} {
		answer := json.RawMessage{}
		b.addJSON(name, &answer, client.JSON(ctx, api.Request{Path: path}, &answer))
	}
	sessions, _, err := c.fetchSessions(ctx, client, "", "")
	b.addJSON("sync.json", sessions, err)
	c.collectZones(ctx, client, b)
	c.collectResources(ctx, client, b, flags.withSpecs)
	b.addFile("settings.yaml", flags.config, maxConfig, b.scrub.settings)
	b.addFile("log.txt", flags.log, maxLogTail, nil)
	slices.SortFunc(b.files, func(a, b bundledFile) int { return strings.Compare(a.name, b.name) })
	return b, nil
}

// collectDiagnostics collects the pages of the diagnostics port. Profiles are available on loopback only.
func (c *cli) collectDiagnostics(ctx context.Context, b *bundle, flag string) error {
	pages := map[string]api.Request{
		"readyz.txt": {Path: server.ReadyPage}, "metrics.txt": {Path: "/metrics"},
		"goroutines.txt": {Path: "/debug/pprof/goroutine", Query: url.Values{"debug": {"1"}}},
	}
	address, err := c.diagnosticsAddress(ctx, flag)
	if err == nil && address == "" {
		err = errors.New("unknown diagnostics port: give --diagnostics URL")
	}
	if err != nil {
		for name := range pages {
			b.miss(name, err)
		}
		return nil
	}
	client, err := c.diagnosticsClient(address)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for name, r := range pages {
		raw, err := client.Do(ctx, r)
		var answer *api.Error
		switch {
		case name == "readyz.txt" && errors.As(err, &answer):
			b.add(name, []byte("not ready: "+answer.Detail+"\n"))
		case err != nil:
			b.miss(name, err)
		default:
			b.add(name, raw)
		}
	}
	return nil
}

// collectZones collects the global's view of zones and their credentials. Zones do not have this data.
func (c *cli) collectZones(ctx context.Context, client *api.Client, b *bundle) {
	d, _ := resources.Lookup(resources.TypeZone)
	zones, err := listAll[json.RawMessage](ctx, client, listPath(d, "")+overviewSuffix, listQuery{descriptor: d})
	b.addJSON("zones.json", zones, err)
	credentials := map[string]json.RawMessage{}
	for _, raw := range zones {
		var zone struct{ Name string }
		if json.Unmarshal(*raw, &zone) != nil {
			continue
		}
		one := json.RawMessage{}
		if err := client.JSON(ctx, api.Request{Path: zonePath(zone.Name, "_credentials")}, &one); err != nil {
			b.miss("credentials of zone "+zone.Name, err)
			continue
		}
		credentials[zone.Name] = one
	}
	b.addJSON("zone-credentials.json", credentials, nil)
}

// resourceFacts are what a bundle contains of a resource whose spec is omitted.
type resourceFacts struct {
	item
	Conditions []resources.Condition `json:"conditions,omitempty"`
	Revision   uint64                `json:"revision,omitempty"`
	// Spec hides the Spec of item.
	Spec *struct{} `json:"spec,omitempty"`
}

// collectResources collects all resources of all types: their names, labels, times and conditions, or whole if whole is
// set.
func (c *cli) collectResources(ctx context.Context, client *api.Client, b *bundle, whole bool) {
	for _, d := range resources.Descriptors() {
		name := "resources/" + d.Path + ".json"
		items, err := listItems(ctx, client, listQuery{descriptor: d})
		if err == nil && len(items) == 0 {
			continue
		}
		if whole {
			b.addJSON(name, wholes(items), err)
			continue
		}
		facts := make([]*resourceFacts, 0, len(items))
		for _, it := range items {
			f := &resourceFacts{item: *it}
			f.Conditions, _ = conditionsOf(it) // a status of another shape has no conditions
			facts = append(facts, f)
		}
		b.addJSON(name, facts, err)
	}
}

// addFile adds the end of a local file, at most limit bytes. If change is not nil, it transforms the content.
func (b *bundle) addFile(name, path string, limit int64, change func([]byte) []byte) {
	if path == "" {
		return
	}
	raw, err := tail(path, limit)
	if err != nil {
		b.miss(name, err)
		return
	}
	if change != nil {
		raw = change(raw)
	}
	b.add(name, raw)
}

// tail reads the last limit bytes of a file.
func tail(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the file that we were told to take
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	if _, err := f.Seek(max(0, info.Size()-limit), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
