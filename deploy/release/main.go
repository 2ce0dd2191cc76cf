// Command release builds a release of Causeway: for each Linux architecture an archive, packages for Debian and for
// RPM, and a list of the contents (SBOM); the command line for macOS and Windows, with the files for Homebrew and
// Scoop; and one file of checksums. The same sources give the same bytes, on any machine at any time: they contain no
// time except that of the commit, and no path. It must run in the folder of the repository.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// programs are the released programs, architectures their targets unless -architectures says otherwise.
var (
	programs      = []string{"causeway-global", "causeway-zone", "causewayctl"}
	architectures = []string{"amd64", "arm64"}
)

// page is the output of the page's build, without which the servers have no page. The same sources give the same page.
const page = "web/dist/page/index.html"

// release is one run.
type release struct {
	version, out, nfpm string
	// linux and desktops say what is built.
	linux, desktops bool
	// architectures are those of Linux.
	architectures []string
	// when is the time of all files.
	when time.Time
	// stage is the folder of the files to pack: ARCH/PROGRAM, share/man, share/completions.
	stage string
}

func main() {
	r := &release{}
	flag.StringVar(&r.version, "version", "dev", "what the programs call themselves")
	flag.StringVar(&r.out, "out", "dist", "`folder` for the result; recreated")
	flag.StringVar(&r.nfpm, "nfpm", ".tools/bin/nfpm", "the `program` that makes packages")
	flag.BoolVar(&r.linux, "linux", true, "build all programs for Linux")
	some := flag.String("architectures", strings.Join(architectures, ","), "build for these architectures of Linux")
	flag.BoolVar(&r.desktops, "desktops", true, "build causewayctl for macOS and Windows")
	flag.Parse()
	r.architectures = strings.Split(*some, ",")
	if err := r.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) run(ctx context.Context) error {
	if _, err := os.Stat(page); r.linux && err != nil {
		return fmt.Errorf("%w: run make build, which builds the page that the servers have in them", err)
	}
	var err error
	if r.when, err = commitTime(ctx); err != nil {
		return err
	}
	if r.stage, err = os.MkdirTemp("", "causeway-release-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.stage) }()
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil { //nolint:gosec // what is released is for everybody
		return err
	}
	if err := r.stageAll(ctx); err != nil {
		return err
	}
	if r.linux {
		if err := r.packLinux(ctx); err != nil {
			return err
		}
	}
	if r.desktops {
		if err := r.packDesktops(); err != nil {
			return err
		}
	}
	return r.checksums()
}

// stageAll compiles the programs, and makes them describe themselves. For desktops alone, the command line of this
// machine is enough for that.
func (r *release) stageAll(ctx context.Context) error {
	built, described := []string{runtime.GOARCH}, []string{commandLine}
	if r.linux {
		built, described = r.architectures, programs
	}
	for _, arch := range built {
		if err := r.build(ctx, target{"linux", arch}, described); err != nil {
			return err
		}
	}
	if r.desktops {
		for _, t := range desktops {
			if err := r.build(ctx, t, []string{commandLine}); err != nil {
				return err
			}
		}
	}
	return r.describe(ctx, described)
}

// packLinux writes the archive, the SBOM and the packages of each architecture of Linux.
func (r *release) packLinux(ctx context.Context) error {
	for _, arch := range r.architectures {
		for _, make := range []func() error{
			func() error { return r.archive(arch) },
			func() error { return r.inventory(arch) },
			func() error { return r.pack(ctx, arch) },
		} {
			if err := make(); err != nil {
				return fmt.Errorf("%s: %w", arch, err)
			}
		}
	}
	return nil
}

// commitTime returns the time in SOURCE_DATE_EPOCH, in seconds, or that of the commit.
func commitTime(ctx context.Context) (time.Time, error) {
	said := os.Getenv("SOURCE_DATE_EPOCH")
	if said == "" {
		raw, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("the time of the commit (set SOURCE_DATE_EPOCH where there is no git): %w", err)
		}
		said = strings.TrimSpace(string(raw))
	}
	seconds, err := strconv.ParseInt(said, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds since 1970", said)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// build compiles some programs for a target, statically linked.
func (r *release) build(ctx context.Context, t target, some []string) error {
	args := []string{"build", "-buildvcs=false", "-ldflags",
		"-s -w -buildid= -X github.com/causeway-mesh/causeway/server.version=" + r.version,
		"-o", filepath.Join(r.stage, t.folder()) + string(filepath.Separator)}
	for _, program := range some {
		args = append(args, "./cmd/"+program)
	}
	return r.command(ctx, []string{"CGO_ENABLED=0", "GOOS=" + t.os, "GOARCH=" + t.arch, "GOFLAGS=-trimpath"}, "go",
		args...)
}

// describe makes some programs write their manual pages and completions.
func (r *release) describe(ctx context.Context, some []string) error {
	if runtime.GOOS != "linux" || !slices.Contains(r.architectures, runtime.GOARCH) {
		return fmt.Errorf("the programs describe themselves, and none of them runs on %s/%s: make releases on Linux, also for this machine",
			runtime.GOOS, runtime.GOARCH)
	}
	folder := filepath.Join(r.stage, "share", "completions")
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // packed with modes of its own
		return err
	}
	epoch := []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.when.Unix())}
	for _, program := range some {
		path := filepath.Join(r.stage, runtime.GOARCH, program)
		if err := r.command(ctx, epoch, path, "man", filepath.Join(r.stage, "share", "man")); err != nil {
			return err
		}
		for shell, name := range map[string]string{"bash": program, "zsh": "_" + program, "fish": program + ".fish"} {
			said, err := exec.CommandContext(ctx, path, "completion", shell).Output() //nolint:gosec // built above
			if err != nil {
				return fmt.Errorf("completion of %s for %s: %w", program, shell, err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), said, 0o644); err != nil { //nolint:gosec // for everybody
				return err
			}
		}
	}
	return nil
}

// checksums writes SHA256SUMS, which sha256sum -c reads.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(raw)
		fmt.Fprintf(&lines, "%s  %s\n", hex.EncodeToString(sum[:]), e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(lines.String()), 0o644) //nolint:gosec // for everybody
}

// command runs a program. It shows the output only if the program fails.
func (r *release) command(ctx context.Context, env []string, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // go, nfpm and what was built here
	cmd.Env = append(os.Environ(), env...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(program), args[0], err, said)
	}
	return nil
}
