// Command recording runs a command and writes what it prints as an animated SVG, which plays in a browser without
// scripts. Pauses are shortened, and lines that come at once follow each other quickly.
//
//	recording -o FILE -shown TEXT COMMAND [ARGUMENT...]
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

func main() {
	out := flag.String("o", "", "`file` of the SVG")
	shown := flag.String("shown", "", "the command as the picture shows it; the real one when empty")
	flag.Parse()
	if *out == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *shown == "" {
		*shown = strings.Join(flag.Args(), " ")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	lines, err := record(ctx, flag.Args())
	if err == nil {
		err = revealsNothing(lines)
	}
	if err == nil {
		var svg bytes.Buffer
		draw(&svg, *shown, paced(lines))
		err = os.WriteFile(*out, svg.Bytes(), 0o644) //nolint:gosec // a picture for everybody
	}
	if err != nil {
		log.Fatal(err) //nolint:gocritic // the process ends
	}
}

// line is one line of output, and when it came after the start.
type line struct {
	at   time.Duration
	text string
}

// record runs the command, which must succeed, and returns what it prints.
func record(ctx context.Context, command []string) ([]line, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the caller's command
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var lines []line
	scanner := bufio.NewScanner(pipe)
	for scanner.Scan() {
		lines = append(lines, line{time.Since(start), strings.TrimRight(scanner.Text(), " ")})
	}
	if err := errors.Join(scanner.Err(), cmd.Wait()); err != nil {
		return nil, fmt.Errorf("%s: %w", command[0], err)
	}
	return lines, nil
}

// revealsNothing returns an error if a line has a path or the name of this machine.
func revealsNothing(lines []line) error {
	secrets := []string{os.TempDir() + "/"}
	for _, of := range []func() (string, error){os.Getwd, os.UserHomeDir, os.Hostname} {
		if text, err := of(); err == nil && len(text) > 1 {
			secrets = append(secrets, text)
		}
	}
	for i, l := range lines {
		for _, secret := range secrets {
			if strings.Contains(l.text, secret) {
				return fmt.Errorf("line %d tells of this machine: %s", i+1, l.text)
			}
		}
	}
	return nil
}

const (
	longestPause  = 1500 * time.Millisecond
	shortestPause = 60 * time.Millisecond
	// paragraphPause is the shortest pause after an empty line.
	paragraphPause = 900 * time.Millisecond
)

// paced returns the lines as a person can follow them.
func paced(lines []line) []line {
	out := make([]line, len(lines))
	var last, now time.Duration
	for i, l := range lines {
		shortest := shortestPause
		if i > 0 && lines[i-1].text == "" {
			shortest = paragraphPause
		}
		now += min(max(l.at-last, shortest), longestPause)
		last = l.at
		out[i] = line{now, l.text}
	}
	return out
}
