package portforward

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	program = "kubectl"
	// quietTime is how long kubectl's words are kept back, until it forwards or fails.
	quietTime = 2 * time.Second
	// lastWords is how long an ended connection waits for kubectl to say why.
	lastWords = 500 * time.Millisecond
	// maxLines and maxLine bound what is kept of kubectl's words.
	maxLines = 20
	maxLine  = 1024
)

// kubectl is a running kubectl port-forward.
type kubectl struct {
	config *Config
	to     target
	cancel context.CancelFunc

	forwards chan struct{} // closed once local is known
	spoke    chan struct{} // closed once it says something afterwards
	ended    chan struct{} // closed once the process has ended, and all that it said is read

	mu        sync.Mutex
	local     string   // guarded by mu: the address of this machine that it forwards
	lines     []string // guarded by mu: what it said, on standard error
	said      string   // guarded by mu: the first line that is not of its log: its error, for people
	cause     error    // guarded by mu: why it could not be started
	published int      // guarded by mu: how many lines Notices has
	loud      bool     // guarded by mu: lines go to Notices at once
}

// start starts kubectl. A failure shows in ready.
func start(c *Config, to target) *kubectl {
	ctx, cancel := context.WithCancel(context.Background())
	k := &kubectl{config: c, to: to, cancel: cancel, forwards: make(chan struct{}), spoke: make(chan struct{}), ended: make(chan struct{})}
	args := []string{"port-forward", "--context=" + c.Context, "--namespace=" + to.namespace, "--address=127.0.0.1",
		"--pod-running-timeout=" + (c.Patience / 2).String(), to.object, ":" + to.port}
	if c.Kubeconfig != "" {
		args = append(args, "--kubeconfig="+c.Kubeconfig)
	}
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the caller's own cluster, by names that targetOf checks
	cmd.SysProcAttr = attributes()
	cmd.Env = withoutOurs(cmd.Environ())
	cmd.WaitDelay = time.Second // a credential plugin may outlive kubectl, with its outputs
	go k.run(cmd)
	return k
}

// withoutOurs drops our variables: a token for the server may be there, which is for nobody on the way.
func withoutOurs(env []string) []string {
	return slices.DeleteFunc(env, func(one string) bool { return strings.HasPrefix(one, "CAUSEWAY_") })
}

// run runs the process until it ends. The thread stays: attributes bind the process to it.
func (k *kubectl) run(cmd *exec.Cmd) {
	runtime.LockOSThread()
	defer close(k.ended)
	defer k.cancel()
	out, said := io.Pipe()
	errOut, complained := io.Pipe()
	cmd.Stdout, cmd.Stderr = said, complained
	var readers sync.WaitGroup
	readers.Go(func() { eachLine(out, k.hear) })
	readers.Go(func() { eachLine(errOut, k.note) })
	err := cmd.Run()
	_, _ = said.Close(), complained.Close()
	readers.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		k.mu.Lock()
		k.cause = err
		k.mu.Unlock()
	}
}

// eachLine reads lines, and continues after one that is too long.
func eachLine(r io.Reader, do func(string)) {
	buffered := bufio.NewReaderSize(r, maxLine)
	for {
		line, more, err := buffered.ReadLine()
		if err != nil {
			return
		}
		do(string(line))
		for more && err == nil {
			_, more, err = buffered.ReadLine()
		}
	}
}

// hear reads a line of standard output: Forwarding from 127.0.0.1:41341 -> 5681.
func (k *kubectl) hear(line string) {
	rest, ok := strings.CutPrefix(line, "Forwarding from ")
	local, _, arrow := strings.Cut(rest, " -> ")
	k.mu.Lock()
	defer k.mu.Unlock()
	if ok && arrow && k.local == "" {
		k.local, k.lines, k.said, k.published = local, nil, "", 0
		k.loud = false
		close(k.forwards)
	}
}

// note keeps a line of standard error.
func (k *kubectl) note(line string) {
	text, ofLog := words(line)
	k.mu.Lock()
	defer k.mu.Unlock()
	if text == "" || slices.Contains(k.lines, text) {
		return
	}
	if !ofLog && k.said == "" {
		k.said = text
	}
	if len(k.lines) == maxLines {
		k.lines = k.lines[1:]
		k.published = max(0, k.published-1)
	}
	k.lines = append(k.lines, text)
	if k.local != "" && len(k.lines) == 1 {
		close(k.spoke)
		k.spoke = make(chan struct{}) // for whoever waits after it spoke: ended, or nothing
	}
	k.publish()
}

// publish shows Notices the lines that it does not have. The caller holds mu.
func (k *kubectl) publish() {
	for ; k.loud && k.published < len(k.lines); k.published++ {
		_, _ = io.WriteString(k.config.Notices, program+": "+k.lines[k.published]+"\n")
	}
}

// ready waits until kubectl forwards, and returns its address on this machine.
func (k *kubectl) ready(ctx context.Context) (string, error) {
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		select {
		case <-k.forwards:
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.local, nil
		case <-k.ended:
			return "", k.problem("")
		case <-quiet.C:
			k.mu.Lock()
			k.loud = k.config.Notices != nil
			k.publish()
			k.mu.Unlock()
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return "", ctx.Err()
			}
			return "", k.problem("kubectl port-forward does not forward in time")
		}
	}
}

// lost returns the reason why an established connection failed, if kubectl knows of one.
func (k *kubectl) lost() error {
	k.mu.Lock()
	spoke, silent := k.spoke, len(k.lines) == 0
	k.mu.Unlock()
	if silent {
		wait := time.NewTimer(lastWords)
		defer wait.Stop()
		select {
		case <-spoke:
		case <-k.ended:
		case <-wait.C:
			return nil
		}
	}
	return k.problem("")
}

func (k *kubectl) hasEnded() bool {
	select {
	case <-k.ended:
		return true
	default:
		return false
	}
}

// end ends the process, and waits for that.
func (k *kubectl) end() {
	k.cancel()
	<-k.ended
}
