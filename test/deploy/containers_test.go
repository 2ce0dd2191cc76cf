package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// unprivileged is the user in containers.
const unprivileged = "65532:65532"

// instruction is an instruction of a Containerfile, with its stage.
type instruction struct {
	stage, name, args string
}

// instructions reads a Containerfile. It joins continued lines.
func instructions(t *testing.T) []instruction {
	t.Helper()
	text := regexp.MustCompile(`\\\n\s*`).ReplaceAllString(read(t, "deploy", "containers", "Containerfile"), " ")
	known := []string{"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "VOLUME", "USER", "EXPOSE", "HEALTHCHECK",
		"ENTRYPOINT", "CMD"}
	var all []instruction
	stage := ""
	for _, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		if !slices.Contains(known, name) || args == "" {
			t.Fatalf("Containerfile: what is %q?", line)
		}
		if name == "FROM" {
			fields := strings.Fields(args)
			if len(fields) != 3 || fields[1] != "AS" {
				t.Fatalf("Containerfile: %q: want FROM image AS stage", line)
			}
			stage = fields[2]
		}
		all = append(all, instruction{stage, name, args})
	}
	return all
}

// TestContainerfile checks the images: from scratch, an unprivileged user, a static program that is its own health
// check.
func TestContainerfile(t *testing.T) {
	from, said := map[string]string{}, map[string]map[string]string{}
	for _, i := range instructions(t) {
		if i.name == "FROM" {
			from[i.stage], said[i.stage] = strings.Fields(i.args)[0], map[string]string{}
			continue
		}
		said[i.stage][i.name] += i.args + "\n"
		if source := regexp.MustCompile(`--from=(\S+)`).FindStringSubmatch(i.args); i.name == "COPY" && source != nil &&
			from[source[1]] == "" {
			t.Errorf("%s copies from %s, which is no stage before it", i.stage, source[1])
		}
	}
	build := said["build"]["RUN"]
	for _, part := range []string{"CGO_ENABLED=0", "-trimpath", "server.version=${VERSION}", "./cmd/..."} {
		if !strings.Contains(build, part) {
			t.Errorf("the build does not say %s", part)
		}
	}
	if from["base"] != "scratch" || strings.TrimSpace(said["base"]["USER"]) != unprivileged {
		t.Errorf("the images are from %q and run as %q", from["base"], said["base"]["USER"])
	}
	for _, program := range []string{"causeway-global", "causeway-zone"} {
		if from[program] != "base" || said[program]["USER"] != "" || said[program]["RUN"] != "" {
			t.Errorf("%s: is from %q, and changes who runs or has no shell to run with", program, from[program])
		}
		entry, command := words(t, said[program]["ENTRYPOINT"]), words(t, said[program]["CMD"])
		_, check, found := strings.Cut(said[program]["HEALTHCHECK"], " CMD ")
		if !found || !slices.Equal(words(t, check), []string{"/usr/bin/" + program, "healthcheck"}) {
			t.Errorf("%s is asked how it is by %q", program, check)
		}
		if !slices.Equal(entry, []string{"/usr/bin/" + program}) ||
			!strings.Contains(said[program]["COPY"], "/out/bin/"+program+" "+entry[0]) {
			t.Errorf("%s starts %q", program, entry)
		}
		checkFlags(t, "Containerfile", program, command)
		checkFlags(t, "Containerfile", program, words(t, check)[1:])
	}
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	if !strings.HasPrefix(from["build"], "golang:"+want+"-") {
		t.Errorf("the image is built by %s, and go.mod wants Go %s", from["build"], want)
	}
}

func words(t *testing.T, list string) []string {
	t.Helper()
	var all []string
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		t.Fatalf("%q is not in the form that needs no shell: %v", list, err)
	}
	return all
}

// composed is the part of the Compose specification that the file may use.
type composed struct {
	Name     string
	Services map[string]composedService
	Volumes  map[string]struct{}
}

type composedService struct {
	Image       string
	Build       struct{ Context, Dockerfile, Target string }
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	User        string
	Restart     string
	StopSignal  string `yaml:"stop_signal"`
	Healthcheck struct {
		Test              []string
		Interval, Timeout string
		StartPeriod       string `yaml:"start_period"`
		Retries           int
		Disable           bool
	}
	NetworkMode string `yaml:"network_mode"`
	Entrypoint  []string
	Command     []string
	Ports       []string
	Volumes     []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

func compose(t *testing.T) *composed {
	t.Helper()
	var whole map[string]any
	must(t, yaml.Unmarshal([]byte(read(t, "deploy", "containers", "compose.yaml")), &whole))
	for key := range whole {
		if strings.HasPrefix(key, "x-") {
			delete(whole, key) // only for merging into others, which is done
		}
	}
	plain, err := yaml.Marshal(whole)
	must(t, err)
	c := &composed{}
	decoder := yaml.NewDecoder(bytes.NewReader(plain))
	decoder.KnownFields(true)
	must(t, decoder.Decode(c))
	return c
}

// TestCompose checks that every service is as restricted as possible, and that what it refers to exists: stages, files,
// volumes, other services, commands and flags.
func TestCompose(t *testing.T) {
	c := compose(t)
	stages := map[string]bool{}
	for _, i := range instructions(t) {
		stages[i.stage] = true
	}
	servers := map[string]int{}
	for name, s := range c.Services {
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) ||
			!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) || s.User != unprivileged {
			t.Errorf("%s may do more than it needs", name)
		}
		for other, d := range s.DependsOn {
			needed, there := c.Services[other]
			want := "service_started"
			switch {
			case needed.Restart == "on-failure":
				want = "service_completed_successfully"
			case len(needed.Healthcheck.Test) > 0:
				want = "service_healthy"
			}
			if !there || d.Condition != want {
				t.Errorf("%s depends on %s, %s: want one that is there, and %s", name, other, d.Condition, want)
			}
		}
		if other, shared := strings.CutPrefix(s.NetworkMode, "service:"); shared &&
			s.DependsOn[other].Condition == "" && len(s.DependsOn) == 0 {
			t.Errorf("%s shares the network of %s, and does not wait for it", name, other)
		} else if holder := c.Services[other]; shared && (len(s.Command) == 0 || s.Restart == "unless-stopped") &&
			!slices.Equal(holder.Command, []string{"sleep", "infinity"}) {
			t.Errorf("%s shares the network of %s: when that restarts, %s is left in the old one", name, other, name)
		}
		for _, v := range s.Volumes {
			checkVolume(t, name, v, c.Volumes)
		}
		if s.Build.Target == "" {
			continue
		}
		dockerfile := filepath.Join(root, "deploy", "containers", s.Build.Context, s.Build.Dockerfile)
		if _, err := os.Stat(dockerfile); err != nil || !stages[s.Build.Target] || s.Image != s.Build.Target {
			t.Errorf("%s is built by %s, target %s, as %s: %v", name, dockerfile, s.Build.Target, s.Image, err)
		}
		program := s.Build.Target
		if len(s.Entrypoint) > 0 {
			program = filepath.Base(s.Entrypoint[0])
		}
		if s.Command[0] == "run" {
			servers[program]++
			if want := []string{"CMD", "/usr/bin/" + program, "healthcheck"}; !slices.Equal(s.Healthcheck.Test, want) {
				t.Errorf("%s is asked how it is by %q, want %q: images in the format of OCI have no health check", name,
					s.Healthcheck.Test, want)
			}
		} else if !s.Healthcheck.Disable {
			t.Errorf("%s has the health check of a server", name)
		}
		checkCommand(t, fmt.Sprintf("compose.yaml, %s", name), program, s.Command)
	}
	if servers["causeway-global"] != 1 || servers["causeway-zone"] != 2 {
		t.Errorf("the servers are %v, want a global and two zones", servers)
	}
}

func checkVolume(t *testing.T, service, volume string, named map[string]struct{}) {
	t.Helper()
	source, _, _ := strings.Cut(volume, ":")
	if _, there := named[source]; there {
		return
	}
	if _, err := os.Stat(filepath.Join(root, "deploy", "containers", source)); err != nil ||
		!strings.HasSuffix(volume, ":ro") {
		t.Errorf("%s mounts %s: want a volume of the file, or a folder that is there and stays as it is (%v)", service,
			volume, err)
	}
}

// checkCommand is checkFlags for a command that may be a subcommand, such as zone create.
func checkCommand(t *testing.T, where, program string, args []string) {
	t.Helper()
	commands := 1
	if args[0] == "zone" || args[0] == "dataplane" {
		commands = 2
	}
	known := flagsOf(t, program, args[:commands]...)
	for _, arg := range args[commands:] {
		if name, ok := strings.CutPrefix(arg, "--"); ok && !known[name] {
			t.Errorf("%s: %s %v has no flag --%s", where, program, args[:commands], name)
		}
	}
}
