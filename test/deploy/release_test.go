package deploy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/pages"
)

// machines are the architectures of a release, as named in the programs' headers.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

const releasedVersion = "v9.8.7-rc.1"

// makeRelease builds a part of a release of the sources in a folder.
func makeRelease(t *testing.T, folder string, part ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "./deploy/release", "-version", releasedVersion,
		"-out", out, "-nfpm", tool(t, "nfpm")}, part...)...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// TestReleaseSnapshot makes a release twice, the second time from a copy of the sources in another folder. All files
// are identical, byte by byte, match the checksums, and have the right contents. What is for other systems than Linux is
// made by TestReleaseForDesktops. With -short, the release is for this machine's architecture alone.
func TestReleaseSnapshot(t *testing.T) {
	released := slices.Sorted(maps.Keys(machines))
	if testing.Short() && slices.Contains(released, runtime.GOARCH) {
		released = []string{runtime.GOARCH}
	}
	part := []string{"-desktops=false", "-architectures=" + strings.Join(released, ",")}
	first := makeRelease(t, root, part...)
	second := makeRelease(t, copySources(t), part...)
	sums := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(readFile(t, first, "SHA256SUMS")), "\n") {
		sum, name, _ := strings.Cut(line, "  ")
		sums[name] = sum
	}
	entries, err := os.ReadDir(first)
	must(t, err)
	if len(entries) != 1+len(sums) || len(sums) != len(released)*(1+1+2*3) {
		t.Errorf("there are %d files and %d checksums, want an archive, an SBOM and six packages of each architecture",
			len(entries), len(sums))
	}
	for _, e := range entries {
		content := readFile(t, first, e.Name())
		if content != readFile(t, second, e.Name()) {
			t.Errorf("%s is another one when it is made elsewhere", e.Name())
		}
		if sum := sha256.Sum256([]byte(content)); e.Name() != "SHA256SUMS" && sums[e.Name()] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not what SHA256SUMS says", e.Name())
		}
	}
	for _, arch := range released {
		checkArchive(t, first, arch, machines[arch])
		checkInventory(t, first, arch)
		checkPackages(t, first, arch)
	}
	startFromPackages(t, first)
}

// startFromPackages unpacks the Debian packages on two machines, and starts their units as systemd would. A zone needs
// nothing else to join a global.
func startFromPackages(t *testing.T, folder string) {
	t.Helper()
	dpkg, err := exec.LookPath("dpkg-deb")
	if _, released := machines[runtime.GOARCH]; err != nil || !released {
		t.Logf("the packages are not started here: %v, %s", err, runtime.GOARCH)
		return
	}
	install := func(programs ...string) *machine {
		m := newMachine(t)
		must(t, os.Remove(filepath.Join(m.dir, "bin"))) // tests the installed programs, not those built here
		for _, program := range programs {
			output(t, dpkg, "--extract",
				filepath.Join(folder, fmt.Sprintf("%s_%s_%s.deb", program, releasedVersion, runtime.GOARCH)), m.root)
		}
		return m
	}
	global, zone := install("causeway-global", "causewayctl"), install("causeway-zone", "causewayctl")
	global.globalVariables()
	global.start("causeway-global")
	_, err = global.shell(t.Context(), "causewayctl zone create zone-1 --out zone-1.join")
	must(t, err)
	bring(t, global, zone, "zone-1.join")
	_, err = zone.shell(t.Context(),
		"mkdir -p -m 0700 /etc/credstore && install -m 0600 zone-1.join /etc/credstore/causeway-zone.join")
	must(t, err)
	zone.zoneVariables()
	zone.start("causeway-zone")
	global.follow(pages.Command{Text: "causewayctl get zones",
		Output: []string{"zone-1 online 2s true " + releasedVersion + " 2s"}}, global.shell)
	zone.stop("causeway-zone")
	global.stop("causeway-global")
}

func readFile(t *testing.T, path ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return string(raw)
}

// copySources copies the files that git tracks or would track, without git's own.
func copySources(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-co", "--exclude-standard", "-z")
	list.Dir = root
	names, err := list.Output()
	must(t, err)
	// The page of make build: git does not track it.
	built := exec.CommandContext(t.Context(), "git", "ls-files", "-o", "-z", "web/dist/page")
	built.Dir = root
	page, err := built.Output()
	must(t, err)
	names = append(names, page...)
	folder := filepath.Join(t.TempDir(), "elsewhere")
	for _, name := range strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
		if target, err := os.Readlink(filepath.Join(root, name)); err == nil {
			must(t, os.Symlink(target, filepath.Join(folder, name)))
			continue
		}
		raw, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, and not committed yet
		}
		must(t, err)
		must(t, os.WriteFile(filepath.Join(folder, name), raw, 0o600))
	}
	return folder
}

func checkArchive(t *testing.T, folder, arch string, machine elf.Machine) {
	t.Helper()
	name := fmt.Sprintf("causeway_%s_linux_%s", releasedVersion, arch)
	zipped, err := gzip.NewReader(strings.NewReader(readFile(t, folder, name+".tar.gz")))
	must(t, err)
	files := map[string]bool{}
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		file, inside := strings.CutPrefix(header.Name, name+"/")
		files[file] = inside
		if !strings.HasPrefix(file, "bin/") {
			continue
		}
		raw, err := io.ReadAll(archive)
		must(t, err)
		program, err := elf.NewFile(bytes.NewReader(raw))
		must(t, err)
		if libraries, err := program.ImportedLibraries(); program.Machine != machine || header.Mode != 0o755 ||
			err != nil || len(libraries) > 0 {
			t.Errorf("%s: %s has mode %o and needs %q (%v)", file, program.Machine, header.Mode, libraries, err)
		}
		if !bytes.Contains(raw, []byte(releasedVersion)) || bytes.Contains(raw, []byte(root)) {
			t.Errorf("%s does not know its version, or knows where it was built", file)
		}
	}
	for _, want := range []string{
		"bin/causeway-global", "bin/causeway-zone", "bin/causewayctl", "LICENSE", "README.md",
		"docs/compare.md", "docs/install/README.md", "docs/images/why.png", "docs/first-policy/backend.yaml",
		"share/man/man1/causeway-zone-run.1",
		"share/man/man1/causewayctl-apply.1", "share/completions/causewayctl", "share/completions/_causeway-zone",
		"share/completions/causeway-global.fish",
		"deploy/systemd/causeway-global.service", "deploy/prometheus/causeway.rules.yaml",
	} {
		if !files[want] {
			t.Errorf("%s has no %s", name, want)
		}
	}
}

func checkInventory(t *testing.T, folder, arch string) {
	t.Helper()
	var bom struct {
		BOMFormat, SpecVersion string
		Metadata               struct{ Component struct{ Version string } }
		Components             []struct{ Name, Version, PURL string }
	}
	must(t, json.Unmarshal([]byte(readFile(t, folder, fmt.Sprintf("causeway_%s_linux_%s.cdx.json", releasedVersion,
		arch))), &bom))
	if bom.BOMFormat != "CycloneDX" || bom.SpecVersion != "1.5" || bom.Metadata.Component.Version != releasedVersion {
		t.Errorf("%s: %s %s of %s", arch, bom.BOMFormat, bom.SpecVersion, bom.Metadata.Component.Version)
	}
	required := read(t, "go.mod")
	found := 0
	for _, c := range bom.Components {
		if c.PURL != "pkg:golang/"+c.Name+"@"+c.Version {
			t.Errorf("%s: %+v", arch, c)
		}
		if strings.Contains(required, c.Name+" "+c.Version) {
			found++
		}
	}
	if found < 30 || found != len(bom.Components)-1 { // go.mod does not require Go itself
		t.Errorf("%s: %d of %d components are in go.mod", arch, found, len(bom.Components))
	}
}

// checkPackages makes dpkg, if it is installed, read the Debian packages. Of the other packages, it checks the first
// bytes.
func checkPackages(t *testing.T, folder, arch string) {
	t.Helper()
	for program, wanted := range map[string][]string{
		"causeway-global": {"./usr/lib/systemd/system/causeway-global.service", "./etc/causeway/global.yaml",
			"./usr/share/man/man1/causeway-global-run.1"},
		"causeway-zone": {"./usr/lib/systemd/system/causeway-zone.service", "./etc/causeway/zone.yaml",
			"./usr/share/man/man1/causeway-zone-join.1"},
		"causewayctl": {"./usr/share/bash-completion/completions/causewayctl", "./usr/share/man/man1/causewayctl-apply.1"},
	} {
		rpm := readFile(t, folder, fmt.Sprintf("%s_%s_%s.rpm", program, releasedVersion, arch))
		if !strings.HasPrefix(rpm, "\xed\xab\xee\xdb") || !strings.Contains(rpm[:4096], program) {
			t.Errorf("the rpm of %s does not begin as one", program)
		}
		deb := filepath.Join(folder, fmt.Sprintf("%s_%s_%s.deb", program, releasedVersion, arch))
		dpkg, err := exec.LookPath("dpkg-deb")
		if err != nil {
			t.Log("no dpkg-deb here: what is in the packages is not looked at")
			return
		}
		if said := output(t, dpkg, "-f", deb, "Version", "Architecture"); !strings.Contains(said,
			"Version: 9.8.7~rc.1\n") || !strings.Contains(said, "Architecture: "+arch+"\n") {
			t.Errorf("%s: %s", filepath.Base(deb), said)
		}
		if program != "causewayctl" {
			for script, says := range map[string]string{"postinst": "restart " + program, "prerm": "stop " + program,
				"postrm": "daemon-reload"} {
				if text := output(t, dpkg, "--info", deb, script); !strings.Contains(text, says) || strings.Contains(text, "@UNIT@") {
					t.Errorf("%s, %s: %s", filepath.Base(deb), script, text)
				}
			}
		}
		files := output(t, dpkg, "--contents", deb)
		for _, want := range append(wanted, "./usr/bin/"+program) {
			if !strings.Contains(files, " "+want+"\n") {
				t.Errorf("%s has no %s:\n%s", filepath.Base(deb), want, files)
			}
		}
	}
}
