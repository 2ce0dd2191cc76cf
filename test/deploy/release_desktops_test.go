package deploy

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/macho"
	"debug/pe"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// downloads is where Homebrew and Scoop find the files of the release.
const downloads = "https://github.com/causeway-mesh/causeway/releases/download/" + releasedVersion + "/"

// TestReleaseForDesktops builds the part of a release for macOS and Windows: native programs, and a formula and a
// manifest that name the archives with their checksums.
func TestReleaseForDesktops(t *testing.T) {
	out := makeRelease(t, root, "-linux=false")
	for arch, cpu := range map[string]macho.Cpu{"amd64": macho.CpuAmd64, "arm64": macho.CpuArm64} {
		name := "causewayctl_" + releasedVersion + "_darwin_" + arch
		files := unpackTar(t, filepath.Join(out, name+".tar.gz"))
		program, err := macho.NewFile(bytes.NewReader(checkDesktop(t, files, name, "bin/causewayctl")))
		must(t, err)
		if program.Cpu != cpu {
			t.Errorf("%s has a program for %s", name, program.Cpu)
		}
	}
	name := "causewayctl_" + releasedVersion + "_windows_amd64"
	files := unpackZip(t, filepath.Join(out, name+".zip"))
	program, err := pe.NewFile(bytes.NewReader(checkDesktop(t, files, name, "bin/causewayctl.exe")))
	must(t, err)
	if program.Machine != pe.IMAGE_FILE_MACHINE_AMD64 {
		t.Errorf("%s has a program for the machine %x", name, program.Machine)
	}
	checkFormula(t, out)
	checkManifest(t, out, files)
	entries, err := os.ReadDir(out)
	must(t, err)
	if sums := strings.Count(readFile(t, out, "SHA256SUMS"), "\n"); len(entries) != 6 || sums != 5 {
		t.Errorf("there are %d files and %d checksums, want three archives, a formula, a manifest and their sums",
			len(entries), sums)
	}
}

// checkDesktop checks the other files of an archive, and returns its program.
func checkDesktop(t *testing.T, files map[string][]byte, folder, program string) []byte {
	t.Helper()
	for _, want := range []string{program, "LICENSE", "README.md", "docs/compare.md", "docs/images/why.png",
		"share/man/man1/causewayctl-apply.1", "share/completions/_causewayctl"} {
		if len(files[folder+"/"+want]) == 0 {
			t.Errorf("%s has no %s", folder, want)
		}
	}
	for name := range files {
		if path.Dir(name) == folder+"/bin" && name != folder+"/"+program {
			t.Errorf("%s has %s, want the command line only", folder, name)
		}
	}
	content := files[folder+"/"+program]
	if !bytes.Contains(content, []byte(releasedVersion)) || bytes.Contains(content, []byte(root)) {
		t.Errorf("%s: the program does not know its version, or knows where it was built", folder)
	}
	return content
}

var (
	formulaFiles = regexp.MustCompile(`(?m)^    url "(.*)"\n    sha256 "(.*)"$`)
	opening      = regexp.MustCompile(`(?m)^ *(class|def) |\bdo$`)
	closing      = regexp.MustCompile(`(?m)^ *end$`)
)

// checkFormula checks the formula, by ruby if it is installed, and that it names the built archives.
func checkFormula(t *testing.T, out string) {
	t.Helper()
	text := readFile(t, out, "causewayctl.rb")
	if ruby, err := exec.LookPath("ruby"); err == nil {
		output(t, ruby, "-c", filepath.Join(out, "causewayctl.rb"))
	}
	if begins, ends := len(opening.FindAllString(text, -1)), len(closing.FindAllString(text, -1)); begins != ends || begins != 5 {
		t.Errorf("the formula opens %d blocks and ends %d:\n%s", begins, ends, text)
	}
	found := formulaFiles.FindAllStringSubmatch(text, -1)
	if len(found) != 2 || strings.Contains(text, "{{") || !strings.Contains(text, `version "9.8.7-rc.1"`) {
		t.Errorf("the formula wants a version and two archives:\n%s", text)
	}
	for _, m := range found {
		checkDownload(t, out, m[1], m[2])
	}
}

// checkManifest checks that Scoop's manifest has the fields that Scoop reads, and names the built archives.
func checkManifest(t *testing.T, out string, files map[string][]byte) {
	t.Helper()
	var manifest struct {
		Version, Description, Homepage, License, Bin string
		Architecture                                 map[string]struct {
			URL, Hash  string
			ExtractDir string `json:"extract_dir"`
		}
	}
	decoder := json.NewDecoder(strings.NewReader(readFile(t, out, "causewayctl.json")))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&manifest))
	archive, there := manifest.Architecture["64bit"]
	if !there || manifest.Version != "9.8.7-rc.1" || manifest.License != "Apache-2.0" || manifest.Homepage == "" {
		t.Fatalf("the manifest is %+v", manifest)
	}
	checkDownload(t, out, archive.URL, archive.Hash)
	if program := archive.ExtractDir + "/" + strings.ReplaceAll(manifest.Bin, `\`, "/"); len(files[program]) == 0 {
		t.Errorf("the archive has no %s", program)
	}
}

// checkDownload checks that an address is that of a file of the release, with its checksum.
func checkDownload(t *testing.T, out, address, sum string) {
	t.Helper()
	name, released := strings.CutPrefix(address, downloads)
	if !released {
		t.Fatalf("%s is not below %s", address, downloads)
	}
	made := sha256.Sum256([]byte(readFile(t, out, name)))
	if sum != hex.EncodeToString(made[:]) {
		t.Errorf("%s has the sum %x, and not %s", name, made, sum)
	}
}

func unpackTar(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	zipped, err := gzip.NewReader(strings.NewReader(readFile(t, archive)))
	must(t, err)
	files := map[string][]byte{}
	for reader := tar.NewReader(zipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		files[header.Name], err = io.ReadAll(reader)
		must(t, err)
	}
}

func unpackZip(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	reader, err := zip.OpenReader(archive)
	must(t, err)
	defer func() { must(t, reader.Close()) }()
	files := map[string][]byte{}
	for _, f := range reader.File {
		file, err := f.Open()
		must(t, err)
		files[f.Name], err = io.ReadAll(file)
		must(t, err)
		must(t, file.Close())
	}
	return files
}
