package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/zone/explain"
)

func newTest(c *cli) *cobra.Command {
	var policies, tests []string
	zone, junit := "", ""
	cmd := &cobra.Command{
		Use:   "test -f FILE -t FILE",
		Short: "Check policies against written expectations",
		Long: "Evaluates the resources of files as a zone would, without a server, and compares the result with\n" +
			"files of expectations: who may do what where, and by which policy. Use it before you apply a change;\n" +
			"docs/permissions.md describes these files. The last line names the entries of policies that no test\n" +
			"covers. -o wide also shows the tests that pass.\n\n" +
			"Exit status: 0 all pass, 1 some fail, 2 unknown.",
		Example: "  causewayctl test -f policies/ -t tests/\n" +
			"  causewayctl test -f policies/ -f services/ -t tests/ --junit report.xml",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.offline(func(ctx context.Context) error {
				world, err := c.readWorld(ctx, policies, zone)
				if err != nil {
					return err
				}
				files, err := c.readExpectations(ctx, tests)
				if err != nil {
					return err
				}
				c.waiting.say("testing")
				report := world.RunTests(files)
				if junit != "" {
					if err := writeJUnit(junit, report); err != nil {
						return err
					}
				}
				return c.printTests(report)
			})(cmd, args)
		},
	}
	addFilenameFlag(cmd, &policies)
	f := cmd.Flags()
	f.StringArrayVarP(&tests, "tests", "t", nil, "`file` of expectations, or directory of such files; may be repeated")
	f.StringVar(&zone, "zone", "", "`zone` of the resources that name none")
	f.StringVar(&junit, "junit", "", "write the results to this `file`, as JUnit XML")
	for _, required := range []string{"filename", "tests"} {
		_ = cmd.MarkFlagRequired(required)
	}
	_ = cmd.MarkFlagFilename("tests", "yaml", "yml")
	_ = cmd.MarkFlagFilename("junit", "xml")
	return cmd
}

// readExpectations reads all files, so that its error names every invalid one.
func (c *cli) readExpectations(ctx context.Context, names []string) ([]*explain.TestFile, error) {
	sources, err := expand(names)
	if err != nil {
		return nil, err
	}
	var files []*explain.TestFile
	var failures []error
	for _, source := range sources {
		raw, err := c.readSource(ctx, source)
		if err != nil {
			return nil, err
		}
		file, err := explain.ReadTests(source, raw)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		files = append(files, file)
	}
	return files, errors.Join(failures...)
}

func writeJUnit(name string, report *explain.Report) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(report.WriteJUnit(f), f.Close())
}

// printTests prints the failures, the number of successes, and the coverage.
func (c *cli) printTests(report *explain.Report) error {
	err := c.printAnswer(report, func() error {
		for i := range report.Cases {
			test := &report.Cases[i]
			switch {
			case test.Failure != "":
				fmt.Fprintf(c.out, "FAIL  %s:%d: %s\n", test.File, test.Line, test.Name)
				fmt.Fprintf(c.out, "      %s\n      %s\n", caseText(test), test.Failure)
			case c.output == formatWide:
				fmt.Fprintf(c.out, "ok    %s:%d: %s\n", test.File, test.Line, test.Name)
			}
		}
		fmt.Fprintf(c.out, "%d passed, %d failed\n%s\n", report.Passed, report.Failed, &report.Coverage)
		return nil
	})
	if err == nil && report.Failed > 0 {
		return errNo
	}
	return err
}

// caseText returns the question of a test as text.
func caseText(test *explain.Case) string {
	text := requestText(explain.Request{From: test.From, Method: test.Method, Path: test.Path}) + " to " + test.To
	if test.Inbound != "" {
		text += "#" + test.Inbound
	}
	return text
}
