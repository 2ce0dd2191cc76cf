package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	_ "embed" // the form of the formula
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// commandLine is the program that people run on their own machines.
const commandLine = "causewayctl"

// downloads is the URL of a release's files, without the tag of its version.
const downloads = "https://github.com/causeway-mesh/causeway/releases/download/"

// target is an operating system and an architecture, in Go's terms.
type target struct{ os, arch string }

// folder returns the target's folder in the stage.
func (t target) folder() string {
	if t.os == "linux" {
		return t.arch
	}
	return t.os + "-" + t.arch
}

// desktops are the targets for which only the command line is released. Windows on Arm runs programs for amd64.
var desktops = []target{{"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

//go:embed causewayctl.rb.tmpl
var formulaForm string

// download is a file of the release in the form for package managers.
type download struct{ URL, SHA256 string }

// formula holds the values for the template of Homebrew's formula.
type formula struct {
	Summary, Version, Tag string
	AMD64, ARM64          download
}

// manifest is Scoop's manifest.
type manifest struct {
	Version      string                `json:"version"`
	Description  string                `json:"description"`
	Homepage     string                `json:"homepage"`
	License      string                `json:"license"`
	Architecture map[string]scoopFiles `json:"architecture"`
	Bin          string                `json:"bin"`
}

// scoopFiles is the archive of an architecture, and the folder in it.
type scoopFiles struct {
	URL        string `json:"url"`
	Hash       string `json:"hash"`
	ExtractDir string `json:"extract_dir"`
}

// packDesktops writes an archive for each desktop, then the formula causewayctl.rb and the manifest causewayctl.json,
// which name them with their checksums.
func (r *release) packDesktops() error {
	archives := map[target]download{}
	for _, t := range desktops {
		made, err := r.desktop(t)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", t.os, t.arch, err)
		}
		archives[t] = made
	}
	version := strings.TrimPrefix(r.version, "v")
	form, err := template.New("formula").Parse(formulaForm)
	if err != nil {
		return err
	}
	var filled bytes.Buffer
	if err := form.Execute(&filled, formula{Summary: summaries[commandLine], Version: version, Tag: r.version,
		AMD64: archives[target{"darwin", "amd64"}], ARM64: archives[target{"darwin", "arm64"}]}); err != nil {
		return err
	}
	if err := r.write(commandLine+".rb", filled.Bytes()); err != nil {
		return err
	}
	windows := archives[target{"windows", "amd64"}]
	raw, err := json.MarshalIndent(manifest{Version: version, Description: summaries[commandLine],
		Homepage: "https://github.com/causeway-mesh/causeway", License: "Apache-2.0",
		Architecture: map[string]scoopFiles{"64bit": {windows.URL, windows.SHA256, r.desktopFolder(target{"windows", "amd64"})}},
		Bin:          `bin\` + commandLine + ".exe"}, "", "    ")
	if err != nil {
		return err
	}
	return r.write(commandLine+".json", append(raw, '\n'))
}

// desktopFolder returns the name of a desktop's archive, without its extension.
func (r *release) desktopFolder(t target) string {
	return fmt.Sprintf("%s_%s_%s_%s", commandLine, r.version, t.os, t.arch)
}

// desktop writes the archive of a desktop: a .zip for Windows, a .tar.gz for macOS.
func (r *release) desktop(t target) (download, error) {
	program, ending := commandLine, ".tar.gz"
	if t.os == "windows" {
		program, ending = commandLine+".exe", ".zip"
	}
	files, err := gather([]packed{{filepath.Join(r.stage, t.folder(), program), "bin/" + program}}, map[string]string{
		filepath.Join(r.stage, "share", "man", commandLine+"*.1"):           "share/man/man1",
		filepath.Join(r.stage, "share", "completions", "*"+commandLine+"*"): "share/completions",
	})
	if err != nil {
		return download{}, err
	}
	folder := r.desktopFolder(t)
	write := r.tarball
	if t.os == "windows" {
		write = r.zipped
	}
	if err := write(folder, files); err != nil {
		return download{}, err
	}
	raw, err := os.ReadFile(filepath.Join(r.out, folder+ending))
	if err != nil {
		return download{}, err
	}
	sum := sha256.Sum256(raw)
	return download{downloads + r.version + "/" + folder + ending, hex.EncodeToString(sum[:])}, nil
}

// zipped writes FOLDER.zip. The folder inside has the same name.
func (r *release) zipped(folder string, files []packed) error {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, f := range files {
		raw, err := os.ReadFile(f.source)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: r.when}
		header.SetMode(f.mode())
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(raw); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return r.write(folder+".zip", out.Bytes())
}

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644) //nolint:gosec // what is released is for everybody
}
