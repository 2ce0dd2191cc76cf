package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// The exit statuses, which scripts rely on. A command that answers a question (diff, explain, test, lint, rollout status)
// keeps 1 for the answer "no", and ends with exitNoAnswer where it could not find out. A name that the server does not know counts as a
// wrong command line.
const (
	exitOK       = 0
	exitFailed   = 1
	exitNo       = 1
	exitUsage    = 2
	exitNoAnswer = 2
)

// failedError marks an operation that was asked for properly and did not succeed. Every other error that reaches main
// is about the command line.
type failedError struct {
	err error
	// status is what the program ends with.
	status int
}

// errNo is the answer "no" of a command that has printed it already.
var errNo = errors.New("the answer is no")

// errUnknown is the answer "unknown" of a command that has printed it already.
var errUnknown = errors.New("the answer is not known")

func (e *failedError) Error() string { return e.err.Error() }
func (e *failedError) Unwrap() error { return e.err }

// usageError is a wrong command line that is found only while the command runs.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// failed marks err as a failed operation, unless it is nil or about the command line.
func failed(err error) error {
	var usage *usageError
	var judged *failedError
	if err == nil || errors.As(err, &usage) || errors.As(err, &judged) {
		return err
	}
	return &failedError{err: err, status: exitFailed}
}

// unanswered marks err as what kept a question from being answered, unless it is nil, the answer, or about the command
// line.
func unanswered(err error) error {
	if f := (*failedError)(nil); errors.As(err, &f) && !errors.Is(err, errNo) {
		return &failedError{err: f.err, status: exitNoAnswer}
	}
	return err
}

// advised is an error with a line that says what to do next.
type advised struct {
	err    error
	advice string
}

func (e *advised) Error() string { return e.err.Error() }
func (e *advised) Unwrap() error { return e.err }

// aboutResource says what became of a request about one resource. Errors of the connection are left as they are.
func aboutResource(key resources.Key, err error) error {
	var answer *api.Error
	if !errors.As(err, &answer) {
		return err
	}
	if api.IsNotFound(answer) {
		advice := fmt.Sprintf("causewayctl get %s lists what there is; --mesh and --namespace say where to look", key.Type)
		if _, copies, ok := strings.Cut(answer.Detail, "; here is "); ok { // the server knows it by another name
			copies, _, _ = strings.Cut(copies, ": ask for it")
			advice = "here is " + copies + ": use that name, or the KRI"
		} else if near := nearestIn(answer); near != "" {
			advice = near
		}
		return unknown(key, &advised{fmt.Errorf("there is no %s", key), advice})
	}
	if len(answer.InvalidParameters) == 0 {
		return fmt.Errorf("%s: %s: %s", key, answer.Title, answer.Detail)
	}
	lines := []string{fmt.Sprintf("%s: %s", key, answer.Title)}
	for _, p := range answer.InvalidParameters {
		lines = append(lines, p.Field+": "+p.Reason)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// nearestIn is what a 404 says is nearest; empty where nothing is.
func nearestIn(answer *api.Error) string {
	if _, near, ok := strings.Cut(answer.Detail, "; the nearest here: "); ok {
		return "the nearest here: " + near
	}
	return ""
}

// refused is the error for documents that cannot be stored, one line for each problem.
func refused(lines []string) error {
	return fmt.Errorf("%s, nothing was stored\n%s", counted(len(lines), "problem"), strings.Join(lines, "\n"))
}

// counted is so many of a thing: 1 problem, 2 problems.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// report prints an error for people and returns the exit status that goes with it. command is what was run, for the
// pointer to its help.
func report(w io.Writer, command string, err error) int {
	if err == nil {
		return exitOK
	}
	switch {
	case errors.Is(err, errNo):
		return exitNo
	case errors.Is(err, errUnknown):
		return exitNoAnswer
	}
	status, asked := exitUsage, false
	if f := (*failedError)(nil); errors.As(err, &f) {
		status, asked = f.status, true
	}
	text := err.Error()
	if errors.Is(err, context.Canceled) {
		text = "interrupted"
	}
	fmt.Fprintf(w, "causewayctl: %s\n", strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  "))
	if a := (*advised)(nil); errors.As(err, &a) {
		fmt.Fprintf(w, "  %s\n", a.advice)
	} else if e := (*api.Error)(nil); errors.As(err, &e) && e.Status == http.StatusUnauthorized {
		fmt.Fprintf(w, "  name a token with --token-file or CAUSEWAY_TOKEN; an admin makes one with causewayctl user token\n")
	} else if !asked {
		fmt.Fprintf(w, "  see %s --help\n", command)
	}
	return status
}
