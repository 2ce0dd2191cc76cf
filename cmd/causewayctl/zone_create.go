package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/server"
)

func newZoneCreate(c *cli) *cobra.Command {
	ttl, rejoin, out := time.Duration(0), false, ""
	cmd := &cobra.Command{
		Use:   "create ZONE",
		Short: "Register a zone and print the join string for its server",
		Long: "Registers a zone on the global and prints one line, the join string: the addresses of the global,\n" +
			"the SHA-256 of its CA, and a short-lived token that is valid once. Anyone who has the line can\n" +
			"become the zone, so treat it like a password. A zone that has joined cannot join again, unless\n" +
			"--rejoin lets a new server replace a lost one.",
		Example: "  causewayctl zone create zone-3\n" +
			"  causewayctl zone create zone-3 | ssh zone-3 causeway-zone join - --data-dir /var/lib/causeway-zone\n" +
			"  causewayctl zone create zone-3 --rejoin --ttl 10m\n" +
			"  causewayctl zone create zone-3 --out join",
		Args: cobra.ExactArgs(1),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			if out != "" {
				if err := server.CheckFile(out); err != nil {
					return err
				}
			}
			offer := &enrolment.JoinOffer{}
			order := enrolment.JoinOrder{Rejoin: rejoin}
			if ttl != 0 {
				order.TTL = ttl.String()
			}
			if err := c.orderZone(ctx, client, args[0], "_join", order, offer); err != nil {
				return err
			}
			if out != "" {
				if err := server.WriteFile(out, []byte(offer.Join+"\n"), 0o600); err != nil {
					return err
				}
				offer.Join = ""
			}
			return c.printAnswer(offer, func() error {
				from := ", which reads it from standard input"
				if out != "" {
					from = " < " + out
				}
				fmt.Fprintf(c.errOut,
					"join string for zone %s, valid once and until %s, for: causeway-zone join - --data-dir DIR%s\n",
					offer.Zone, offer.Expires.Local().Format(time.DateTime+" MST"), from)
				if out != "" {
					return nil
				}
				_, err := fmt.Fprintln(c.out, offer.Join)
				return err
			})
		}),
	}
	cmd.Flags().StringVar(&out, "out", "",
		"`file` for the join string, readable by its owner only; by default it is printed")
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long the join string is valid, at most 24h; 1h by default")
	cmd.Flags().BoolVar(&rejoin, "rejoin", false, "the joining server replaces one that has joined before")
	return cmd
}

func newZoneToken(c *cli) *cobra.Command {
	ttl, scopes := time.Duration(0), []string{"cp"}
	cmd := &cobra.Command{
		Use:   "token ZONE",
		Short: "Print a bearer token for a zone that cannot join",
		Long: "Prints a token (JWT) with which a peer that does not support join strings authenticates as the zone:\n" +
			"it sends it in the metadata of its calls, `authorization: Bearer TOKEN`. The global accepts tokens\n" +
			"only if it was started with --kds-zone-tokens.",
		Example: "  causewayctl zone token zone-9 --ttl 720h > token && chmod 600 token",
		Args:    cobra.ExactArgs(1),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			offer := &enrolment.TokenOffer{}
			order := enrolment.TokenOrder{Scopes: scopes}
			if ttl != 0 {
				order.TTL = ttl.String()
			}
			if err := c.orderZone(ctx, client, args[0], "_token", order, offer); err != nil {
				return err
			}
			return c.printAnswer(offer, func() error {
				_, err := fmt.Fprintln(c.out, offer.Token)
				return err
			})
		}),
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "how long the token is valid, at most 8760h; 720h by default")
	cmd.Flags().StringSliceVar(&scopes, "scope", scopes, "scopes of the token: cp, ingress, egress")
	return cmd
}

// orderZone posts an order for a zone.
func (c *cli) orderZone(ctx context.Context, client *api.Client, zone, path string, order, answer any) error {
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	err = client.JSON(ctx, api.Request{Method: http.MethodPost, Path: zonePath(zone, path), Body: body}, answer)
	if api.IsNotFound(err) {
		return unknownZone(zone, err)
	}
	return aboutResource(resources.Key{Type: resources.TypeZone, Name: zone}, err)
}

func newZoneRename(*cli) *cobra.Command {
	return &cobra.Command{
		Use:   "rename ZONE NAME",
		Short: "Explain how to rename a zone: replace it by another one",
		Long: "A zone's name is part of the names of its resources elsewhere and of the identities of its\n" +
			"workloads, so it cannot change. This command shows what to do instead.",
		Example: "  causewayctl zone rename zone-1 zone-one",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return failed(&advised{
				fmt.Errorf("zone %s cannot be renamed: the names and identities of everything that it has contain its name", args[0]),
				fmt.Sprintf("replace it by a new zone: causewayctl zone create %s, start its server with a new data directory, move the workloads and\n"+
					"  permit their new identities, and then causewayctl zone delete %s", args[1], args[0]),
			})
		},
	}
}

// agree asks the user on standard input. --yes answers in advance.
func (c *cli) agree(question string) error {
	fmt.Fprintf(c.errOut, "%s [y/N] ", question)
	answer, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && answer == "" {
		fmt.Fprintln(c.errOut)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return failed(errors.New("nothing changed: answer y, or give --yes"))
}
