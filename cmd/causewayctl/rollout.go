package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// rolloutInterval is how often a waiting command polls.
const rolloutInterval = 250 * time.Millisecond

func newRollout(c *cli) *cobra.Command {
	return newGroup("rollout", "Follow a change to the zones and their proxies", newRolloutStatus(c))
}

func newRolloutStatus(c *cli) *cobra.Command {
	scope, wait := &scopeFlags{}, false
	cmd := &cobra.Command{
		Use:   "status TYPE NAME | status KRI",
		Short: "Show the rollout of the newest revision of a resource",
		Long: "The global shows which zones acknowledged it, and how many proxies enforce it, of all Dataplanes\n" +
			"that it selects. A zone shows whether the global has it, and its own proxies; it knows nothing about\n" +
			"other zones, and does not know whether a copy is the newest while the global is offline. A proxy\n" +
			"that is not connected, or whose zone is offline, keeps its configuration: what it enforces is shown\n" +
			"as unknown, with the time. The command also shows what no proxy of this version enforces.\n\n" +
			"Exit status: 0 it is everywhere that the server knows of; 1 it is not, that is unknown, or the\n" +
			"policy selects no proxy; 2 no answer. With --wait it waits until it is everywhere, a zone refuses\n" +
			"it, nothing enforces it, or --timeout expires.",
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
	cmd.Flags().BoolVarP(&wait, "wait", "w", false, "wait until it is everywhere, or --timeout expires")
	return cmd
}

// resourceKey returns the key that TYPE NAME or a KRI names.
func resourceKey(ctx context.Context, client *api.Client, scope *scopeFlags, args []string) (resources.Key, error) {
	if len(args) == 1 {
		if !isKRI(args[0]) {
			return resources.Key{}, usagef("name the resource: TYPE NAME, or a KRI")
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

// globalScope replaces the mesh in the path of a resource without a mesh.
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
		return nil, fmt.Errorf("%s: unexpected response: %w", path, err)
	}
	status.whole = raw
	return status, nil
}

// awaitRollout polls until the rollout is complete, a zone refuses, or the time is over. It then returns the last
// status.
func (c *cli) awaitRollout(ctx context.Context, client *api.Client, key resources.Key,
	status *rolloutStatus) (*rolloutStatus, error) {
	tick := time.NewTicker(rolloutInterval)
	defer tick.Stop()
	for !status.settled() {
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

// overtime returns nil if the time is over, because that is an answer, too.
func overtime(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return ctx.Err()
}

func (c *cli) printRollout(status *rolloutStatus) error {
	if err := c.printAnswer(status.whole, func() error {
		fmt.Fprintln(c.out, status.sentence())
		for _, line := range status.advice() {
			fmt.Fprintln(c.out, toDo(line))
		}
		return nil
	}); err != nil {
		return err
	}
	if !status.complete() {
		return errNo
	}
	return nil
}
