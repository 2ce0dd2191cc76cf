package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// rewrite replaces the text between the markers of each section. A section that was not measured stays unchanged.
func rewrite(path string, sections map[string]string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := string(raw)
	for name, section := range sections {
		begin, end := fmt.Sprintf("<!-- bench: %s -->\n", name), fmt.Sprintf("<!-- end: %s -->", name)
		head, rest, found := strings.Cut(text, begin)
		_, tail, ended := strings.Cut(rest, end)
		if !found || !ended {
			return fmt.Errorf("%s: want the lines %q and %q", path, strings.TrimSpace(begin), end)
		}
		text = head + begin + "\n" + strings.TrimSpace(section) + "\n\n" + end + tail
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// conditions describes the machine and the method of the measurement.
func conditions(p plan) string {
	processor := "an unknown processor"
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if _, name, found := strings.Cut(line, "model name\t: "); found {
				processor = strings.TrimSpace(name)
				break
			}
		}
	}
	return fmt.Sprintf("Measured on %s, %d processors of %s, %s %s/%s. %d rounds; servers, simulated peers and the rest of the machine share the processors.",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), processor, runtime.Version(), runtime.GOOS,
		runtime.GOARCH, p.rounds)
}

// benchmarked are the packages with benchmarks beside their code.
var benchmarked = []string{"./api/...", "./resources/...", "./kds/...", "./zone/..."}

// packageBenchmarks runs the Go benchmarks beside the code and returns their results as a Markdown table.
func packageBenchmarks(ctx context.Context, quick bool) (string, error) {
	root, err := cluster.Root()
	if err != nil {
		return "", err
	}
	long := "500ms"
	if quick {
		long = "50ms"
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", ".", "-benchtime", long, "-benchmem", "-p",
		"1", "-timeout", "30m")
	cmd.Args = append(cmd.Args, benchmarked...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("the packages' benchmarks: %w\n%s", err, raw)
	}
	return benchmarkTable(raw), nil
}

func benchmarkTable(raw []byte) string {
	out := "| package | benchmark | time | memory | allocations |\n| --- | --- | --- | --- | --- |\n"
	lines, pkg := bufio.NewScanner(bytes.NewReader(raw)), ""
	for lines.Scan() {
		if p, found := strings.CutPrefix(lines.Text(), "pkg: github.com/causeway-mesh/causeway/"); found {
			pkg = p
		}
		f := strings.Fields(lines.Text())
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		values := map[string]float64{}
		for i := 2; i+1 < len(f); i += 2 {
			values[f[i+1]], _ = strconv.ParseFloat(f[i], 64)
		}
		name := strings.TrimPrefix(f[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 { // the number of processors
			name = name[:i]
		}
		out += fmt.Sprintf("| %s | %s | %s | %s | %s |\n", pkg, strings.ReplaceAll(name, "_", " "),
			scaled(values["ns/op"], 1000, "ns", "us", "ms", "s"), scaled(values["B/op"], 1024, "B", "KiB", "MiB",
				"GiB"), strconv.FormatFloat(values["allocs/op"], 'f', 0, 64))
	}
	return out
}

// scaled prints v in the largest unit in which it is at least one. Each unit is base times the previous one.
func scaled(v, base float64, units ...string) string {
	for len(units) > 1 && v >= base {
		v, units = v/base, units[1:]
	}
	return number(v) + " " + units[0]
}
