package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/printing"
)

// doctorFlags select what doctor checks besides the HTTP API.
type doctorFlags struct {
	dataDir, diagnostics string
	ports                []string
	watch                bool
}

func newDoctor(c *cli) *cobra.Command {
	flags := &doctorFlags{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a server and its parts, and show how to fix what is wrong",
		Long: "Checks a global, or a zone: does it answer in time, its clock, its certificates and keys, versions,\n" +
			"the store, the audit log, each zone (online, behind, refusals, removals that are held, credentials),\n" +
			"the cluster in which users write, the proxies and the gateways. On the server's machine --data-dir\n" +
			"adds the disk, the certificates in files, and who may read the keys. It also reports what it could not\n" +
			"check.\n\n" +
			"A problem needs action; a warning may. Exit status: 0 no problems, 1 problems, 2 the server did not\n" +
			"answer.",
		Example: "  causewayctl doctor\n" +
			"  causewayctl doctor --data-dir /var/lib/causeway --port 127.0.0.1:5685   # on the global's machine\n" +
			"  causewayctl doctor --address http://127.0.0.1:15681 --diagnostics http://127.0.0.1:15680   # a zone\n" +
			"  causewayctl doctor --watch\n" +
			"  causewayctl doctor -o json | jq '.findings[] | select(.status == \"problem\")'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.watch {
				return c.endlessOperation(func(ctx context.Context, client *api.Client, _ []string) error {
					return c.watchDoctor(ctx, client, flags)
				})(cmd, args)
			}
			return c.question(func(ctx context.Context, client *api.Client, _ []string) error {
				return c.doctor(ctx, client, flags)
			})(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.dataDir, "data-dir", "", "the server's data `folder`, on its own machine")
	f.StringVar(&flags.diagnostics, "diagnostics", "",
		"`URL` of the server's --diagnostics-address; http://127.0.0.1:5680 when the API is at its default address, and what the server's own variables say beside it")
	f.BoolVar(&flags.watch, "watch", false, "check every 10 s until interrupted, and print what is found when it has changed")
	f.StringSliceVar(&flags.ports, "port", nil, "`address` (HOST:PORT) of another port of the server, such as the one for zones or for proxies; may be repeated")
	return cmd
}

// The statuses of a finding, from best to worst.
const (
	findingOK      = "ok"
	findingUnknown = "unknown" // the check could not run
	findingWarning = "warning"
	findingProblem = "problem"
)

// finding is the outcome of one check.
type finding struct {
	Status string `json:"status"`
	Check  string `json:"check"`
	// About is the subject of the finding, if a check has several subjects.
	About string `json:"about,omitempty"`
	What  string `json:"what"`
	Why   string `json:"why,omitempty"`
	Do    string `json:"do,omitempty"`
}

// diagnosis holds all findings, in the order of the checks.
type diagnosis struct {
	Address  string    `json:"address"`
	Findings []finding `json:"findings"`
}

func (d *diagnosis) add(f ...finding) { d.Findings = append(d.Findings, f...) }

// note adds a finding with status OK.
func (d *diagnosis) note(check, about, what string, args ...any) {
	d.add(finding{Status: findingOK, Check: check, About: about, What: fmt.Sprintf(what, args...)})
}

// unknown adds a finding for a check that could not run.
func (d *diagnosis) unknown(check, about string, err error, do string) {
	d.add(finding{Status: findingUnknown, Check: check, About: about, What: err.Error(), Do: do})
}

func (d *diagnosis) count(status string) (n int) {
	for i := range d.Findings {
		if d.Findings[i].Status == status {
			n++
		}
	}
	return n
}

// examination is the state that the checks of one run share.
type examination struct {
	diagnosis

	cli    *cli
	client *api.Client
	flags  *doctorFlags
	// version is the server's version, home its zone; empty for a global.
	version, home string
	// late are the zones that are known to lack, or hold, changes of the global.
	late []string
	// unread means that of some zone it is not known whether it lacks any.
	unread bool
}

// doctor prints the findings. The exit status reports the result.
func (c *cli) doctor(ctx context.Context, client *api.Client, flags *doctorFlags) error {
	d, err := c.diagnose(ctx, client, flags)
	if err != nil {
		return err
	}
	if err := c.printAnswer(d, func() error { return d.print(c.out) }); err != nil {
		return err
	}
	if d.count(findingProblem) > 0 {
		return errNo
	}
	return nil
}

// diagnose runs the checks one after another. It fails only if the server does not respond at all.
func (c *cli) diagnose(ctx context.Context, client *api.Client, flags *doctorFlags) (*diagnosis, error) {
	e := &examination{diagnosis: diagnosis{Address: c.address, Findings: []finding{}}, cli: c, client: client,
		flags: flags}
	if err := e.server(ctx); err != nil {
		return nil, err
	}
	e.audit(ctx)
	e.keys(ctx)
	if err := e.readiness(ctx); err != nil {
		return nil, err
	}
	e.otherPorts(ctx)
	e.store(ctx)
	if err := e.sync(ctx); err != nil {
		return nil, err
	}
	e.trust(ctx)
	e.proxies(ctx)
	e.ingresses(ctx)
	e.egress(ctx)
	e.gateways(ctx)
	if flags.dataDir != "" {
		e.dataDir()
	}
	return &e.diagnosis, nil
}

// print writes a table of all findings, and below it the advice, both worst first.
func (d *diagnosis) print(w io.Writer) error {
	t := &table{header: []string{"STATUS", "CHECK", "ABOUT", "WHAT"}}
	sorted := slices.Clone(d.Findings)
	slices.SortStableFunc(sorted, func(a, b finding) int { return cmp.Compare(severity(b.Status), severity(a.Status)) })
	for i := range sorted {
		f := &sorted[i]
		t.add(f.Status, f.Check, f.About, f.What)
	}
	if err := t.print(w); err != nil {
		return err
	}
	bad := slices.DeleteFunc(sorted, func(f finding) bool { return f.Why == "" && f.Do == "" })
	for i := range bad {
		f := &bad[i]
		fmt.Fprintf(w, "\n%s: %s: %s\n", f.Status, printing.Line(cmp.Or(f.About, f.Check)), printing.Line(f.What))
		if f.Why != "" {
			fmt.Fprintf(w, "  why it matters: %s\n", printing.Line(f.Why))
		}
		if f.Do != "" {
			fmt.Fprintln(w, toDo(f.Do))
		}
	}
	_, err := fmt.Fprintf(w, "\n%s, %s, %d not checked\n",
		counted(d.count(findingProblem), "problem"), counted(d.count(findingWarning), "warning"), d.count(findingUnknown))
	return err
}

// toDo returns the line of advice below a finding.
func toDo(advice string) string { return "  what to do:     " + printing.Line(advice) }

func severity(status string) int {
	return slices.Index([]string{findingOK, findingUnknown, findingWarning, findingProblem}, status)
}
