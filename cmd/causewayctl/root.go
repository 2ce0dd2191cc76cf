package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/server"
)

const (
	defaultAddress = "http://127.0.0.1:5681"
	addressEnv     = "CAUSEWAY_ADDRESS"
	caEnv          = "CAUSEWAY_CA"
	defaultTimeout = 30 * time.Second
)

// cli is the state that all commands share: inputs, outputs and the global flags.
type cli struct {
	in          io.Reader
	out, errOut io.Writer
	// raw is the writer below out, for bytes that are not for people.
	raw io.Writer

	address    string
	caFile     string
	credential credentialFlags
	context    contextFlags
	kube       kubeFlags
	timeout    time.Duration
	revision   uint64
	output     outputFormat
	colour     colourMode
	// painter is the writer below out; nil if nothing is coloured.
	painter *painter

	// waiting shows what the running operation waits for; nil outside an operation.
	waiting *progress
	// left counts what the responses omitted.
	left leftOuts
}

func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:   "causewayctl",
		Short: "Apply, read and explain the resources of a Causeway mesh",
		Long: "causewayctl talks to the HTTP API of a global or of a zone.\n\n" +
			"Exit status: 0 done, 1 the operation failed, 2 the command line is invalid, names something that the\n" +
			"server does not have, or asks for what only the other kind of server has. Commands that answer a\n" +
			"question (diff, explain, why, test, lint, rollout status) exit with 0 for yes, 1 for no and 2 for\n" +
			"unknown. Every command exits with 3 if the session of its context has ended: causewayctl login.",
		Example: "  causewayctl apply -f policies/\n" +
			"  causewayctl get meshtrafficpermissions --all-meshes\n" +
			"  causewayctl inspect dataplane backend-1 --address http://127.0.0.1:15681",
		Args:          cobra.NoArgs,
		Version:       server.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			warnOfVariables(c.errOut, os.Environ())
			if c.output.onlyOfGet() && cmd.Name() != "get" {
				return usagef("-o %s is a format of causewayctl get; here it is one of %s", c.output.String(),
					strings.Join(outputFormats(), ", "))
			}
			c.paint()
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("causewayctl {{.Version}}\n")
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.errOut)

	f := root.PersistentFlags()
	f.StringVar(&c.address, "address", cmp.Or(os.Getenv(addressEnv), beside(os.Getenv(serverAPIEnv)), defaultAddress),
		"`URL` of the control plane's HTTP API; also "+addressEnv)
	f.StringVar(&c.caFile, "ca", cmp.Or(os.Getenv(caEnv), besideFile("tls/ca.crt", "kds-tls/ca.crt")),
		"PEM `file` of the CA that signed the server's certificate, for https addresses; also "+caEnv)
	c.credential.add(f)
	c.context.add(f)
	_ = root.RegisterFlagCompletionFunc("context", c.completeContext)
	c.kube.add(f)
	_ = root.RegisterFlagCompletionFunc("kube-context", c.kube.complete)
	f.DurationVar(&c.timeout, "timeout", defaultTimeout, "how long one command may take")
	f.Uint64Var(&c.revision, "revision", 0, "read only once the server has this `revision`, which apply -o json prints: for what was written on another replica")
	f.VarP(&c.output, "output", "o", "`format` of the output: table, wide, yaml or json; get has more")
	_ = root.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions(outputFormats(), cobra.ShellCompDirectiveNoFileComp))

	f.Var(&c.colour, "color", "`when` states and verdicts have colours: auto (on a terminal, unless NO_COLOR is set), always or never")
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{string(colourAuto), string(colourAlways),
		string(colourNever)}, cobra.ShellCompDirectiveNoFileComp))

	root.AddCommand(newApply(c), newDiff(c), newGet(c), newDescribe(c), newEdit(c), newDelete(c), newInspect(c), newExplain(c), newWhy(c), newLint(c),
		newTest(c), newRollout(c), newZone(c), newDataplane(c), newProxy(c), newKeys(c), newSecret(c),
		newAuth(c), newLogin(c), newLogout(c), newConfig(c), newUser(c), newAudit(c), newReport(c), newSuggest(c), newSVID(c), newBackup(c), newRestore(c),
		newMigrateStore(c), newFsck(c), newDoctor(c), newSupportBundle(c), newInstall(c), newVersion(c),
		settings.NewMan("causewayctl"), settings.NewReference("causewayctl"))
	return root
}

// groupExamples is the number of examples of a group.
const groupExamples = 4

// newGroup returns a command that only contains others. Its examples are the first ones of the first of them.
func newGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var examples []string
	for _, one := range commands[:min(len(commands), groupExamples)] {
		first, _, _ := strings.Cut(one.Example, "\n")
		examples = append(examples, first)
	}
	group.Example = strings.Join(examples, "\n")
	group.AddCommand(commands...)
	return group
}

// operationFunc is the body of a command that talks to a server.
type operationFunc func(ctx context.Context, client *api.Client, args []string) error

// operation returns the RunE of a command. It limits the time, connects, and marks errors of run as a failed operation
// rather than a wrong command line.
func (c *cli) operation(run operationFunc) func(*cobra.Command, []string) error {
	return c.endlessOperation(func(ctx context.Context, client *api.Client, args []string) error {
		ctx, cancel := context.WithTimeout(ctx, c.timeout)
		defer cancel()
		c.waiting = startProgress(c.errOut, "waiting for "+c.address)
		defer c.waiting.stop()
		return run(ctx, client, args)
	})
}

// question is operation for a command whose answer is its exit status. A failure ends with exitNoAnswer.
func (c *cli) question(run operationFunc) func(*cobra.Command, []string) error {
	ask := c.operation(run)
	return func(cmd *cobra.Command, args []string) error { return unanswered(ask(cmd, args)) }
}

// said returns the result of a command. If output was lost, it returns the reason, so that the command does not end as
// if everything had been printed.
func (c *cli) said(err error) error {
	out, ok := c.out.(*printing.Writer)
	if !ok || err != nil && !errors.Is(err, errNo) && !errors.Is(err, errUnknown) {
		return err
	}
	if lost := out.Err(); lost != nil {
		return lost
	}
	return err
}

// endlessOperation is operation for a command that runs until it is interrupted. --timeout applies only to its single
// requests.
func (c *cli) endlessOperation(run operationFunc) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		client, err := c.connect()
		if err != nil {
			return err
		}
		ctx, end, err := beginTrace(cmd)
		if err != nil {
			return err
		}
		err = c.aboutSession(withNearest(ctx, client, run(ctx, client, args)))
		c.sayLeftOut()
		err = c.said(err)
		end(err)
		return failed(c.aboutContext(explainTransport(c.address, c.kube.about(err))))
	}
}
