package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/causeway-mesh/causeway/credential"
	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// built is the folder with the program under test. TestMain sets it.
var built string

// programs returns the folder with the program under test. What TestMain looks at is no input of a test's result, so each
// test that starts the program looks again.
func programs() string {
	programtest.Look(programtest.Release)
	return built
}

// TestMain builds the programs separately from the tests. The test binary includes a whole zone and the race detector,
// which would burden each of the many processes that the scripts start.
func TestMain(m *testing.M) {
	status := 1
	defer func() { os.Exit(status) }()
	dir, err := os.MkdirTemp("", "causewayctl-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer os.RemoveAll(dir)
	if err := cluster.Build(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	built = dir
	status = m.Run()
}

// TestScripts runs the real program, in its own process, against a real server. Each script has its own servers.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup:               startServer,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "unknown-names": unknownNames, "other-servers": otherServers, "mode": mode,
			"identity": identity, "eventually": eventually, "help-examples": helpExamples, "sign-in-guide": signInGuide,
		},
		UpdateScripts: os.Getenv("UPDATE") != "",
	})
}

// exits runs a program and checks its exit status: `exits 2 causewayctl get`.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// eventually runs a program until it succeeds: `eventually test -f svid.pem`.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually PROGRAM [ARGUMENT...]")
	}
	last := errors.New("it did not run")
	if err := cluster.Until(context.Background(), time.Minute, strings.Join(args, " "), func(context.Context) error {
		last = ts.Exec(args[0], args[1:]...)
		return last
	}); err != nil {
		ts.Fatalf("%q still fails: %v", args, last)
	}
}

// mode checks the permissions of a file: `mode 600 svid_key.pem`.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode OCTAL FILE")
	}
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := info.Mode().Perm(); got != os.FileMode(want) {
		ts.Fatalf("%s has mode %o, want %o", args[1], got, want)
	}
}

// identity checks that a directory holds a key, a certificate for it with one SPIFFE ID, and the CA that signed it:
// `identity spiffe://... DIRECTORY`.
func identity(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: identity SPIFFE-ID DIRECTORY")
	}
	dir := ts.MkAbs(args[1])
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, svidFile), filepath.Join(dir, svidKeyFile))
	ts.Check(err)
	roots, err := credential.Pool("bundle", filepath.Join(dir, bundleFile))
	ts.Check(err)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	ts.Check(err)
	if uris := pair.Leaf.URIs; len(uris) != 1 || uris[0].String() != args[0] {
		ts.Fatalf("the certificate is for %v, want %s", uris, args[0])
	}
}
