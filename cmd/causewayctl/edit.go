package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

func newEdit(c *cli) *cobra.Command {
	scope := &scopeFlags{}
	cmd := &cobra.Command{
		Use:   "edit TYPE NAME | edit KRI",
		Short: "Change a resource in an editor",
		Long: "Opens the resource as YAML in the editor of VISUAL or EDITOR, otherwise vi, and applies what you\n" +
			"save. If the server refuses it, the editor opens again with the reason as a comment. To cancel,\n" +
			"leave the text unchanged or empty. Nothing is lost: if the text cannot be applied, the command names\n" +
			"the file that keeps it. If somebody else has changed the resource meanwhile, nothing is applied.",
		Example: "  causewayctl edit meshtrafficpermission allow-frontend\n" +
			"  EDITOR='code --wait' causewayctl edit mt slow --mesh payments",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 2 || len(args) == 1 && isKRI(args[0]) {
				return nil
			}
			return errors.New("name what to edit: TYPE NAME, or KRI")
		},
		ValidArgsFunction: c.completeTypeAndName(scope),
		RunE: c.endlessOperation(func(ctx context.Context, client *api.Client, args []string) error {
			read, err := (&getFlags{scopeFlags: *scope}).reads(args)
			if err != nil {
				return err
			}
			it, err := read[0](ctx, client)
			if err != nil {
				return err
			}
			if it, err = fetchTagged(ctx, client, it.key()); err != nil {
				return err
			}
			return c.edit(ctx, client, it)
		}),
	}
	scope.add(cmd)
	return cmd
}

// edit opens an item in the editor until the saved text is applied, or the user gives up.
func (c *cli) edit(ctx context.Context, client *api.Client, it *item) error {
	var original bytes.Buffer
	if err := printYAML(&original, it.whole); err != nil {
		return err
	}
	f, err := os.CreateTemp("", "causewayctl-edit-*.yaml")
	if err != nil {
		return err
	}
	path := f.Name()
	_ = f.Close()
	text := original.Bytes()
	for reason := ""; ; {
		edited, err := c.editOnce(ctx, path, reason, text)
		if missing := (*noEditor)(nil); errors.As(err, &missing) && reason == "" {
			_ = os.Remove(path) // nobody has changed it
			return err
		}
		if err != nil {
			return keptIn(path, err)
		}
		if len(bytes.TrimSpace(edited)) == 0 || bytes.Equal(edited, text) {
			if reason != "" && len(bytes.TrimSpace(edited)) > 0 {
				return keptIn(path, errors.New("nothing was stored: the text is as it was when it was refused"))
			}
			_ = os.Remove(path)
			_, err := fmt.Fprintln(c.errOut, "nothing changed")
			return err
		}
		text = edited
		err = c.applyEdited(ctx, client, it, path, text)
		var again *refusedEdit
		if errors.As(err, &again) {
			reason = again.Error()
			continue
		}
		if err != nil {
			return keptIn(path, err)
		}
		return os.Remove(path)
	}
}

// editorDelay is how long background processes of an editor may keep its standard error open.
const editorDelay = time.Second

// editOnce writes the text below the reason why it was refused, if any, and returns it as the editor leaves it.
func (c *cli) editOnce(ctx context.Context, path, reason string, text []byte) ([]byte, error) {
	header := "# Save to apply, leave as it is to give up. Comments at the top are not kept.\n"
	for _, line := range strings.Split(strings.TrimSpace(reason), "\n") {
		if line != "" {
			header += "# refused: " + line + "\n"
		}
	}
	if err := os.WriteFile(path, append([]byte(header), text...), 0o600); err != nil {
		return nil, err
	}
	words := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"))
	if len(words) == 0 {
		return nil, usagef("EDITOR is blank: want the name of a program")
	}
	// An interrupt is typed for the editor, which must not lose its content.
	editor := exec.CommandContext(context.WithoutCancel(ctx), words[0], append(words[1:], path)...) //nolint:gosec // the user names it
	editor.Stdin, editor.Stdout, editor.Stderr = c.in, c.raw, c.errOut
	editor.WaitDelay = editorDelay
	if err := editor.Start(); err != nil {
		return nil, &noEditor{words[0], err}
	}
	if err := editor.Wait(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, fmt.Errorf("the editor %s: %w", words[0], err)
	}
	if ctx.Err() != nil {
		return nil, errors.New("interrupted: nothing was stored")
	}
	edited, err := c.readSource(ctx, path)
	if err == nil && len(edited) > resources.MaxDocumentBytes {
		return nil, fmt.Errorf("nothing was stored: the text has more than %d bytes", resources.MaxDocumentBytes)
	}
	for err == nil && bytes.HasPrefix(edited, []byte("#")) {
		_, edited, _ = bytes.Cut(edited, []byte("\n"))
	}
	return edited, err
}

// noEditor reports that the editor could not be started.
type noEditor struct {
	name string
	err  error
}

func (e *noEditor) Error() string {
	return "the editor " + e.name + " cannot be started: set EDITOR or VISUAL to one that can: " + e.err.Error()
}

func (e *noEditor) Unwrap() error { return e.err }

// refusedEdit is the reason why a text must be edited again.
type refusedEdit struct{ error }

// applyEdited applies the text if it is still about the item, and nobody else has changed the item.
func (c *cli) applyEdited(ctx context.Context, client *api.Client, it *item, path string, text []byte) error {
	decoded, err := resources.DecodeDocuments(text, resources.DecodeOptions{})
	if err != nil {
		return &refusedEdit{errors.New(strings.Join(located("the text", err), "\n"))}
	}
	if len(decoded) != 1 || decoded[0].Key != it.key() {
		return &refusedEdit{fmt.Errorf("want one document about %s: type, mesh, namespace and name stay as they are", it.key())}
	}
	var docs []document
	for i, r := range decoded {
		docs = append(docs, document{source: path, number: i + 1, resource: r})
	}
	written, err := client.PutIf(ctx, decoded[0], it.tag)
	var answer *api.Error
	switch {
	case err == nil:
	case errors.As(err, &answer) && answer.Status == http.StatusPreconditionFailed:
		return fmt.Errorf("nothing was stored: somebody has changed %s meanwhile", it.key())
	case errors.As(err, &answer) && answer.Status == http.StatusBadRequest:
		return &refusedEdit{traced(docs, err)}
	default:
		return traced(docs, err)
	}
	return c.printOutcomes(docs, &api.BatchResult{Revision: written.Revision, Results: []api.BatchedItem{{
		Type: it.Type, Mesh: it.Mesh, Namespace: it.Namespace, Name: it.Name, KRI: it.KRI, Result: written.Result,
		Warnings: written.Warnings}}})
}

// fetchTagged reads a resource with the tag that lets a later write detect other changes.
func fetchTagged(ctx context.Context, client *api.Client, key resources.Key) (*item, error) {
	path, query, err := api.ItemPath(key)
	if err != nil {
		return nil, err
	}
	raw, tag, err := client.Tagged(ctx, api.Request{Path: path, Query: query})
	if err != nil {
		return nil, aboutResource(key, err)
	}
	if tag == "" {
		return nil, errors.New("the server is older than this program and cannot tell whether somebody else changes it meanwhile: use causewayctl get -o yaml, and apply")
	}
	it := &item{}
	if err := json.Unmarshal(raw, it); err != nil {
		return nil, fmt.Errorf("%s: unexpected response: %w", path, err)
	}
	it.tag = tag
	return it, nil
}

// keptIn adds the location of the text to an error.
func keptIn(path string, err error) error {
	return &advised{err, "the text is kept in " + path + ": causewayctl apply -f applies it"}
}
