package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/resources"
)

// document is one resource and its place in the input.
type document struct {
	// source is a file, or "standard input"; number is the document's index in it, from 1.
	source   string
	number   int
	resource *resources.Resource
}

func (d document) String() string { return fmt.Sprintf("%s, document %d", d.source, d.number) }

const standardInput = "standard input"

// manifestSuffixes are the suffixes of the files that are read from a directory.
var manifestSuffixes = []string{".yaml", ".yml", ".json"}

func addFilenameFlag(cmd *cobra.Command, filenames *[]string) {
	cmd.Flags().StringArrayVarP(filenames, "filename", "f", nil,
		"`file` of resources, directory (with the files "+strings.Join(manifestSuffixes, ", ")+
			" under it), URL, or - for standard input; may be repeated")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
}

// readDocuments reads all files that -f names. If any document is invalid, it returns only an error, which lists every
// problem with its file and document.
func (c *cli) readDocuments(ctx context.Context, filenames []string) ([]document, error) {
	sources, err := expand(filenames)
	if err != nil {
		return nil, err
	}
	var docs []document
	var problems []string
	for _, source := range sources {
		raw, err := c.readSource(ctx, source)
		if err != nil {
			return nil, err
		}
		decoded, err := resources.DecodeDocuments(raw, resources.DecodeOptions{})
		if err != nil {
			problems = append(problems, located(source, err)...)
			continue
		}
		for i, r := range decoded {
			docs = append(docs, document{source: source, number: i + 1, resource: r})
		}
	}
	if len(problems) > 0 {
		return nil, refused(problems)
	}
	if len(docs) == 0 {
		return nil, fmt.Errorf("%s: it has no resource", strings.Join(filenames, ", "))
	}
	return docs, nil
}

// readSource reads one byte more than documents may have, so that their decoder reports that they are too long.
func (c *cli) readSource(ctx context.Context, source string) ([]byte, error) {
	if isURL(source) {
		return c.readURL(ctx, source)
	}
	in := c.in
	if source != standardInput {
		f, err := os.Open(source) //nolint:gosec // the user names it
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	raw, err := readAll(ctx, io.LimitReader(in, resources.MaxDocumentBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return raw, nil
}

// readAll is io.ReadAll that an interrupt ends even if no data arrives from a terminal or a pipe.
func readAll(ctx context.Context, in io.Reader) ([]byte, error) {
	type result struct {
		raw []byte
		err error
	}
	read := make(chan result, 1)
	go func() { // it ends with the program at the latest
		raw, err := io.ReadAll(in)
		read <- result{raw, err}
	}()
	select {
	case got := <-read:
		return got.raw, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// expand replaces directories with the files under them, in the order of their paths, without hidden files.
func expand(filenames []string) ([]string, error) {
	var sources []string
	for _, name := range filenames {
		if name == "-" {
			sources = append(sources, standardInput)
			continue
		}
		if isURL(name) {
			sources = append(sources, name)
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			sources = append(sources, name)
			continue
		}
		found, err := manifestsUnder(name)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no file ends in %s", name, strings.Join(manifestSuffixes, ", "))
		}
		sources = append(sources, found...)
	}
	return sources, nil
}

func manifestsUnder(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != dir && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.IsDir() && slices.Contains(manifestSuffixes, filepath.Ext(path)):
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// located prefixes each problem with its file and document, one line per field.
func located(source string, err error) []string {
	var bad *resources.DocumentsError
	if !errors.As(err, &bad) {
		return []string{fmt.Sprintf("%s: %v", source, err)}
	}
	var lines []string
	for _, invalid := range bad.Invalid {
		at := document{source: source, number: max(invalid.Document, 1)}
		for _, p := range invalid.Problems {
			lines = append(lines, fmt.Sprintf("%s: %s", at, p))
		}
	}
	return lines
}

func resourcesOf(docs []document) []*resources.Resource {
	all := make([]*resources.Resource, len(docs))
	for i, doc := range docs {
		all[i] = doc.resource
	}
	return all
}
