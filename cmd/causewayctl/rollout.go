package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// rolloutInterval is how often a waiting command asks.
const rolloutInterval = 250 * time.Millisecond

func newRollout(c *cli) *cobra.Command {
	return newGroup("rollout", "Follow a change to the zones and their proxies", newRolloutStatus(c))
}

func newRolloutStatus(c *cli) *cobra.Command {
	scope, wait := &scopeFlags{}, false
	cmd := &cobra.Command{
		Use:   "status TYPE NAME | status KRI",
		Short: "Say how far the newest revision of a resource has come",
		Long: "Asked of the global: which zones acknowledged it, and how many proxies enforce it; zones that cannot report about\n" +
			"their proxies count by their acknowledgement. Asked of a zone: its own proxies.\n\n" +
			"Exit status: 0 it is everywhere, 1 it is not, 2 that could not be found out. With --wait it waits until it is\n" +
			"everywhere, a zone refuses it, or --timeout is over.",
		Example: "  causewayctl rollout status meshtrafficpermission allow-frontend\n" +
			"  causewayctl rollout status mtp allow-frontend --wait --timeout 2m && ./next-step.sh",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: c.completeTypeAndName(scope),
		RunE: c.question(func(ctx context.Context, client *api.Client, args []string) error {
			key, err := resourceKey(ctx, client, scope, args)
			if err != nil {
				return err
			}
			status, err := fetchRollout(ctx, client, key)
			if err == nil && wait {
				status, err = c.awaitRollout(ctx, client, key, status)
			}
			if err != nil {
				return err
			}
			return c.printRollout(status)
		}),
	}
	scope.add(cmd)
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "wait until it is everywhere, or --timeout is over")
	return cmd
}

// resourceKey is the key that TYPE NAME or a KRI names.
func resourceKey(ctx context.Context, client *api.Client, scope *scopeFlags, args []string) (resources.Key, error) {
	if len(args) == 1 {
		if !isKRI(args[0]) {
			return resources.Key{}, usagef("say which resource: TYPE NAME, or a KRI")
		}
		it, err := fetchKRI(ctx, client, args[0])
		if err != nil {
			return resources.Key{}, err
		}
		return it.key(), nil
	}
	d, err := lookupType(args[0])
	if err != nil {
		return resources.Key{}, err
	}
	return scope.key(d, args[1]), nil
}

// rolloutStatus is the answer to GET /_rollout/{type}/{mesh}/{name}.
type rolloutStatus struct {
	Revision uint64 `json:"revision"`
	Stored   bool   `json:"stored"`
	Zones    struct {
		Acknowledged int           `json:"acknowledged"`
		Total        int           `json:"total"`
		Offline      []offlineZone `json:"offline"`
		Refused      []refusedZone `json:"refused"`
		Pending      []string      `json:"pending"`
	} `json:"zones"`
	Proxies struct {
		Enforced int           `json:"enforced"`
		Total    int           `json:"total"`
		Behind   []behindProxy `json:"behind"`
	} `json:"proxies"`
	// whole is the answer as it came.
	whole json.RawMessage
}

type offlineZone struct {
	Zone string `json:"zone"`
	// Since is zero for a zone that has not connected since the server started.
	Since time.Time `json:"since,omitzero"`
}

type refusedZone struct {
	Zone   string `json:"zone"`
	Reason string `json:"reason"`
}

// behindProxy is a proxy that has not acknowledged everything, Reason why where it said so.
type behindProxy struct {
	Mesh      string `json:"mesh"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
}

func (p behindProxy) String() string {
	at := place(resources.Key{Mesh: p.Mesh, Namespace: p.Namespace, Name: p.Name})
	if p.Reason != "" {
		at += " (" + p.Reason + ")"
	}
	return at
}

// complete: nothing is left to do.
func (s *rolloutStatus) complete() bool {
	return s.Stored && s.Zones.Acknowledged >= s.Zones.Total && s.Proxies.Enforced >= s.Proxies.Total && len(s.Zones.Refused) == 0
}

// sentence says it for people: revision, how far, and who is behind and why.
func (s *rolloutStatus) sentence() string {
	parts := []string{"not stored"}
	if s.Stored {
		parts = []string{
			"stored",
			fmt.Sprintf("acknowledged by %d of %d zones", s.Zones.Acknowledged, s.Zones.Total),
			fmt.Sprintf("enforced by %d of %d proxies", s.Proxies.Enforced, s.Proxies.Total),
		}
	}
	for _, zone := range s.Zones.Offline {
		if zone.Since.IsZero() {
			parts = append(parts, zone.Zone+" offline since the server started")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s offline since %s", zone.Zone, zone.Since.UTC().Format(time.RFC3339)))
	}
	for _, zone := range s.Zones.Refused {
		parts = append(parts, fmt.Sprintf("%s refused: %s", zone.Zone, zone.Reason))
	}
	if len(s.Zones.Pending) > 0 {
		parts = append(parts, "waiting for "+firstOf(s.Zones.Pending, 5))
	}
	var behind []string
	for _, proxy := range s.Proxies.Behind {
		behind = append(behind, proxy.String())
	}
	if len(behind) > 0 {
		parts = append(parts, "waiting for proxies "+firstOf(behind, 3))
	}
	return fmt.Sprintf("revision %d: %s", s.Revision, strings.Join(parts, "; "))
}

// firstOf is a list for people, cut after n.
func firstOf(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// globalScope stands in a path for the mesh of a resource that has none.
const globalScope = "-"

func fetchRollout(ctx context.Context, client *api.Client, key resources.Key) (*rolloutStatus, error) {
	mesh, query := key.Mesh, url.Values{}
	if mesh == "" {
		mesh = globalScope
	}
	if key.Namespace != "" {
		query.Set("namespace", key.Namespace)
	}
	path := "/_rollout/" + url.PathEscape(string(key.Type)) + "/" + url.PathEscape(mesh) + "/" + url.PathEscape(key.Name)
	status := &rolloutStatus{}
	raw, err := client.Do(ctx, api.Request{Path: path, Query: query})
	if err != nil {
		return nil, aboutResource(key, err)
	}
	if err := json.Unmarshal(raw, status); err != nil {
		return nil, fmt.Errorf("%s: the answer is not what was expected: %w", path, err)
	}
	status.whole = raw
	return status, nil
}

// awaitRollout asks again until the status is complete, a zone refused, or the time is over; the last status is the
// answer then.
func (c *cli) awaitRollout(ctx context.Context, client *api.Client, key resources.Key, status *rolloutStatus) (*rolloutStatus, error) {
	tick := time.NewTicker(rolloutInterval)
	defer tick.Stop()
	for !status.complete() && len(status.Zones.Refused) == 0 {
		c.waiting.say("%s", status.sentence())
		select {
		case <-ctx.Done():
			return status, overtime(ctx)
		case <-tick.C:
		}
		next, err := fetchRollout(ctx, client, key)
		if err != nil && ctx.Err() != nil {
			return status, overtime(ctx)
		}
		if err != nil {
			return nil, err
		}
		status = next
	}
	return status, nil
}

// overtime is nil when the time is over, which is an answer too.
func overtime(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return ctx.Err()
}

func (c *cli) printRollout(status *rolloutStatus) error {
	if err := c.printAnswer(status.whole, func() error {
		_, err := fmt.Fprintln(c.out, status.sentence())
		return err
	}); err != nil {
		return err
	}
	if !status.complete() {
		return errNo
	}
	return nil
}
