package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// The exit statuses, which scripts rely on. A command that answers a question (diff, explain, test, lint, rollout
// status) reserves 1 for the answer "no", and ends with exitNoAnswer if it cannot find the answer. An unknown name
// counts as a wrong command line.
const (
	exitOK       = 0
	exitFailed   = 1
	exitNo       = 1
	exitUsage    = 2
	exitNoAnswer = 2
	// exitSignIn says that the session of the context holds no longer, in questions too.
	exitSignIn = 3
)

// failedError reports that an operation was requested correctly and failed. Every other error that reaches main
// concerns the command line.
type failedError struct {
	err error
	// status is the exit status of the program.
	status int
}

// errNo is the answer "no" of a command that has already printed it.
var errNo = errors.New("the answer is no")

// errUnknown is the answer "unknown" of a command that has already printed it.
var errUnknown = errors.New("the answer is unknown")

func (e *failedError) Error() string { return e.err.Error() }
func (e *failedError) Unwrap() error { return e.err }

// usageError is an error in the command line that is found only while the command runs.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// failed marks err as a failed operation, unless it is nil or concerns the command line.
func failed(err error) error {
	var usage *usageError
	var judged *failedError
	if err == nil || errors.As(err, &usage) || errors.As(err, &judged) {
		return err
	}
	return &failedError{err: err, status: exitFailed}
}

// unanswered marks err as the reason why a question has no answer, unless it is nil, the answer, or concerns the
// command line.
func unanswered(err error) error {
	if f := (*failedError)(nil); errors.As(err, &f) && !errors.Is(err, errNo) && f.status != exitSignIn {
		return &failedError{err: f.err, status: exitNoAnswer}
	}
	return err
}

// advised is an error with a line of advice.
type advised struct {
	err    error
	advice string
}

func (e *advised) Error() string { return e.err.Error() }
func (e *advised) Unwrap() error { return e.err }

// aboutResource describes the result of a request for one resource. It returns errors of the connection, and errors
// that refer to another server, unchanged.
func aboutResource(key resources.Key, err error) error {
	var answer *api.Error
	if !errors.As(err, &answer) || api.IsElsewhere(err) {
		return err
	}
	if api.IsNotFound(answer) {
		advice := fmt.Sprintf("causewayctl get %s lists the existing ones; --mesh and --namespace select where to look", key.Type)
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

// nearestIn returns the nearest name that a 404 suggests, or an empty string if there is none.
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

// counted returns a number with its noun: 1 problem, 2 problems.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// report prints an error as text and returns its exit status. command is the command that was run, for the pointer to
// its help.
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
