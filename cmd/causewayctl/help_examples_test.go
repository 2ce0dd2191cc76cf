package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
)

// exampleTime is how long one example may take.
const exampleTime = time.Minute

// examplesOf returns the examples in the help of all commands.
func examplesOf(cmd *cobra.Command) []string {
	var out []string
	for line := range strings.Lines(cmd.Example) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	for _, child := range cmd.Commands() {
		out = append(out, examplesOf(child)...)
	}
	return out
}

// helpExamples runs every example of every command's help, in the order of a table: `help-examples examples.txt`. A row
// is the server that a command without --address calls (global or zone; follow for a command that the user interrupts),
// the exit status, or several with | between them, and the example, separated by tabs; or "not", why it cannot run here,
// and the example.
func helpExamples(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: help-examples TABLE")
	}
	left := examplesOf(newRoot(&cli{}))
	failed := 0
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		row := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if len(row) != 3 {
			ts.Fatalf("the row %q: want three columns", line)
		}
		before := len(left)
		if left = slices.DeleteFunc(left, func(e string) bool { return e == row[2] }); len(left) == before {
			ts.Logf("no help has the example, or two rows have it: %s", row[2])
			failed++
		}
		if row[0] == "not" {
			continue
		}
		if status, said := runExample(ts, row[0], row[2]); !slices.Contains(strings.Split(row[1], "|"), strconv.Itoa(status)) {
			ts.Logf("FAILED %s: status %d, want %s\n%s", row[2], status, row[1], said)
			failed++
		}
	}
	for _, example := range left {
		ts.Logf("no row runs the example, or says why it cannot be run: %s", example)
	}
	if failed+len(left) > 0 {
		ts.Fatalf("%d examples failed, %d are missing", failed, len(left))
	}
}

// runExample runs an example as a user types it, against the servers of the script.
func runExample(ts *testscript.TestScript, server, example string) (status int, said string) {
	folder := ts.MkAbs("folder") // of a server that does not run
	if strings.HasPrefix(example, "causewayctl doctor") {
		folder = ts.Getenv("DATA_DIR")
	}
	here := strings.NewReplacer("http://127.0.0.1:15681", ts.Getenv("ZONE_ADDRESS"), "http://127.0.0.1:15680",
		ts.Getenv("ZONE_DIAGNOSTICS"), "127.0.0.1:5685", ts.Getenv("KDS"), "/var/lib/causeway", folder, "--timeout 2m", "--timeout 1s")
	ctx, cancel := context.WithTimeout(context.Background(), exampleTime)
	defer cancel()
	line := here.Replace(example)
	if server == "follow" {
		line = "exec " + line
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", line) //nolint:gosec // an example of the program under test
	cmd.WaitDelay = time.Second
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"), "XDG_CONFIG_HOME="+ts.MkAbs("."), "EDITOR=true",
		addressEnv+"="+ts.Getenv(addressEnv))
	if server == "zone" {
		cmd.Env = append(cmd.Env, addressEnv+"="+ts.Getenv("ZONE_ADDRESS"))
	}
	if strings.Contains(example, " config ") || strings.Contains(example, "--context") {
		cmd.Env = append(cmd.Env, addressEnv+"=")
	}
	out := &firstWord{}
	if server == "follow" {
		out.then = func() { _ = cmd.Process.Signal(os.Interrupt) }
	}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), out.said.String()
	}
	ts.Check(err)
	return 0, out.said.String()
}

// firstWord keeps output, and calls then at the first byte.
type firstWord struct {
	said bytes.Buffer
	then func()
}

func (f *firstWord) Write(p []byte) (int, error) {
	if f.then != nil {
		f.then()
		f.then = nil
	}
	return f.said.Write(p)
}
