package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/server/porttest"
	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/pages"
)

// reader follows a page in its own folder, with other ports.
type reader struct {
	t         *testing.T
	root, dir string
	ports     *strings.Replacer
	// path, if set, is the only folder of programs, and the environment of the machine is left out.
	path string
	// jobs are the background processes, in order; the first is %1.
	jobs []*exec.Cmd
}

// newReader gives a reader the files of a folder of docs.
func newReader(t *testing.T, root, folder string) *reader {
	t.Helper()
	r := &reader{t: t, root: root, dir: t.TempDir()}
	var pairs []string
	for _, port := range readmePorts {
		free, err := porttest.Free()
		r.must(err)
		pairs = append(pairs, port, strconv.Itoa(free))
	}
	r.ports = strings.NewReplacer(pairs...)
	r.must(os.MkdirAll(filepath.Join(r.dir, ".tools", "bin"), 0o700))
	r.must(os.Symlink(programs.envoy(), filepath.Join(r.dir, ".tools", "bin", "envoy")))
	r.must(os.Symlink(programs.bin(), filepath.Join(r.dir, "bin")))
	files, err := filepath.Glob(filepath.Join(root, "docs", folder, "*.yaml"))
	r.must(err)
	r.must(os.MkdirAll(filepath.Join(r.dir, "docs", folder), 0o700))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		r.must(err)
		copied := r.ports.Replace(string(raw))
		r.must(os.WriteFile(filepath.Join(r.dir, "docs", folder, filepath.Base(file)), []byte(copied), 0o600))
	}
	return r
}

func (r *reader) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// follow runs one command. A command that keeps running runs until the end of the test. Any other is repeated until its
// output is as expected, as a reader would who was too quick.
func (r *reader) follow(c pages.Command) {
	r.t.Helper()
	if strings.HasPrefix(c.Text, "make ") {
		return // done before: these are the programs under test
	}
	if build, ok := strings.CutPrefix(c.Text, "go build -o "); ok {
		r.build(strings.Fields(build))
		return
	}
	command := r.ports.Replace(c.Text)
	if job, ok := strings.CutPrefix(command, "kill %"); ok {
		r.kill(job)
		return
	}
	if background, ok := strings.CutSuffix(command, " &"); ok {
		r.background(background)
		return
	}
	err := cluster.Until(r.t.Context(), patience, "what the README shows", func(ctx context.Context) error {
		out, err := r.run(ctx, command)
		if err != nil {
			return err
		}
		return pages.Shows(c.Output, out, r.ports)
	})
	if err != nil {
		r.t.Fatalf("$ %s\n%v", command, err)
	}
}

// kill ends a background process with SIGTERM, and waits.
func (r *reader) kill(job string) {
	r.t.Helper()
	n, err := strconv.Atoi(job)
	r.must(err)
	if n < 1 || n > len(r.jobs) {
		r.t.Fatalf("kill %%%d: there are %d", n, len(r.jobs))
	}
	r.must(r.jobs[n-1].Process.Signal(syscall.SIGTERM))
	r.must(r.jobs[n-1].Wait())
}

// build brings a program of docs to where a page has it built.
func (r *reader) build(args []string) {
	r.t.Helper()
	program, err := programtest.Program(r.t.Context(), filepath.Base(args[1]))
	r.must(err)
	built := filepath.Join(r.dir, args[0])
	r.must(os.MkdirAll(filepath.Dir(built), 0o700))
	r.must(os.Symlink(program, built))
}

// background starts a command that keeps running. If it is a server, background waits until its log reports that it is
// ready.
func (r *reader) background(command string) {
	r.t.Helper()
	if strings.Contains(command, "envoy -c") {
		command += " --use-dynamic-base-id" // another Envoy may run on this machine
	}
	cmd := exec.Command("bash", "-c", "exec "+command)
	cmd.Dir, cmd.Env = r.dir, r.withoutFile(command, r.environment())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.CreateTemp(r.dir, "log-")
	r.must(err)
	cmd.Stdout, cmd.Stderr = log, log
	r.must(cmd.Start())
	r.jobs = append(r.jobs, cmd)
	read := func() string {
		raw, err := os.ReadFile(log.Name())
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
	r.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		_ = log.Close()
		if r.t.Failed() {
			r.t.Logf("$ %s &\n%s", command, read())
		}
	})
	if !strings.HasPrefix(strings.TrimPrefix(command, "bin/"), "causeway-") {
		return
	}
	r.must(cluster.Until(r.t.Context(), patience, "the server to be ready", func(context.Context) error {
		if !strings.Contains(read(), " is ready") {
			return errNotYet
		}
		return nil
	}))
}

// environment replaces the default ports that the section does not name.
func (r *reader) environment() []string {
	// The machine's own folder for programs comes first; ours is for pages that assume installed programs.
	path := strings.Join([]string{filepath.Join(r.dir, "usr", "local", "bin"), programs.bin(), os.Getenv("PATH")}, ":")
	env := append(os.Environ(), "PATH="+path)
	if r.path != "" {
		env = []string{"PATH=" + r.path, "HOME=" + r.dir}
	}
	for name, address := range map[string]string{
		"CAUSEWAY_ADDRESS":             "http://127.0.0.1:5681",
		"CAUSEWAY_API_ADDRESS":         "127.0.0.1:5681",
		"CAUSEWAY_KDS_ADDRESS":         "127.0.0.1:5685",
		"CAUSEWAY_DIAGNOSTICS_ADDRESS": "127.0.0.1:5680",
		"CAUSEWAY_XDS_ADDRESS":         "127.0.0.1:5678",
		"CAUSEWAY_ADMIN_ADDRESS":       "127.0.0.1:9901",
	} {
		env = append(env, name+"="+r.ports.Replace(address))
	}
	return env
}

// withoutFile removes variables that a settings file sets, because the environment would win.
func (r *reader) withoutFile(command string, env []string) []string {
	r.t.Helper()
	_, file, found := strings.Cut(command, " --config ")
	if !found {
		return env
	}
	file, _, _ = strings.Cut(file, " ")
	settings, err := os.ReadFile(filepath.Join(r.dir, file))
	r.must(err)
	return slices.DeleteFunc(env, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		key := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "CAUSEWAY_"), "_", "-"))
		return strings.HasPrefix(name, "CAUSEWAY_") && strings.Contains("\n"+string(settings), "\n"+key+": ")
	})
}

func (r *reader) run(ctx context.Context, command string) (string, error) {
	if strings.HasPrefix(command, "curl ") {
		return r.curl(ctx, strings.Fields(command))
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = r.dir, r.environment()
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s%s", err, out, &errOut)
	}
	return string(out), nil
}

// curl implements a few flags of curl, which the test machine need not have.
func (r *reader) curl(ctx context.Context, args []string) (string, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	files := map[string]string{}
	for i, arg := range args {
		if arg == "--cert" || arg == "--key" {
			files[arg] = filepath.Join(r.dir, args[i+1])
		}
	}
	if len(files) == 2 {
		pair, err := tls.LoadX509KeyPair(files["--cert"], files["--key"])
		if err != nil {
			return "", err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: config,
		DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, args[len(args)-1], nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}
