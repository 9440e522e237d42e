// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/spelling"
	"github.com/satchel-dev/satchel/internal/view"
)

// opened is an artifact that was downloaded and verified.
type opened struct {
	*bundle.Bundle

	published bundle.Published
}

// held is what an artifact holds. Its JSON form is what the command prints.
type held struct {
	Source         string     `json:"source"`
	Revision       string     `json:"revision"`
	OriginRevision string     `json:"originRevision,omitempty"`
	Digest         string     `json:"digest"` // of the archive
	Folder         string     `json:"folder,omitempty"`
	Files          []heldFile `json:"files"`
}

// heldFile is one file of an artifact.
type heldFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// open downloads the artifact of a target, with the user's permissions.
func open(ctx context.Context, a *kit.App, t kit.Target, revision string) (opened, error) {
	c, err := a.Connect()
	if err != nil {
		return opened{}, err
	}
	config, err := a.RestConfig()
	if err != nil {
		return opened{}, err
	}
	object, err := c.Get(ctx, t)
	if err != nil {
		return opened{}, err
	}
	var published bundle.Published
	switch o := object.(type) {
	case *v1alpha1.BundleSource:
		published, err = bundle.PublishedBy(o)
	case *v1alpha1.BundleDeployment:
		user, failed := tenant.ForUser(config, tenant.Options{})
		if failed != nil {
			return opened{}, failed
		}
		published, err = bundle.PublishedFor(ctx, c, user, o)
		if err == nil && revision != "" {
			published, err = published.At(o, revision)
		}
	}
	if err != nil {
		return opened{}, err
	}
	if published.Note != "" {
		a.Note([]string{published.Note})
	}
	b, err := bundle.OpenArtifact(ctx, a, config, published.Owner, published.Artifact)
	return opened{Bundle: b, published: published}, err
}

// list lists the files.
func (o opened) list(ctx context.Context) (held, error) {
	h := held{
		Source: o.published.Owner.String(), Revision: o.published.Artifact.Revision, OriginRevision: o.published.Origin,
		Digest: o.published.Artifact.Digest, Files: []heldFile{},
	}
	err := fs.WalkDir(o.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil || entry.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		h.Files = append(h.Files, heldFile{Path: path, Size: info.Size()})
		return nil
	})
	return h, err
}

// writeInto writes all files into a new or empty folder.
func (o opened) writeInto(ctx context.Context, dir string, h *held) error {
	if err := bundle.CheckFree(dir); err != nil {
		return err
	}
	h.Folder = dir
	_, err := bundle.WriteFolder(ctx, dir, o.Files)
	return err
}

// printFile writes one file to the output as it is. On a terminal, characters that could control it are escaped.
func (o opened) printFile(a *kit.App, path string) error {
	info, err := fs.Stat(o.Files, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o.noFile(path)
	case err != nil:
		return o.unreadable(path, err)
	case info.IsDir():
		return fmt.Errorf("%s is a folder in the artifact of %s: name a file in it, or write all files with --dir", view.Inline(path), o.published.Owner)
	}
	if printer.IsTerminal(a.Streams.Out) {
		content, err := fs.ReadFile(o.Files, path)
		if err != nil {
			return o.unreadable(path, err)
		}
		_, err = fmt.Fprint(a.Streams.Out, view.Printable(string(content)))
		return err
	}
	file, err := o.Files.Open(path)
	if err != nil {
		return o.unreadable(path, err)
	}
	defer file.Close() //nolint:errcheck // only read from
	_, err = io.Copy(a.Streams.Out, file)
	return err
}

// unreadable names the file that could not be read.
func (o opened) unreadable(path string, err error) error {
	return fmt.Errorf("reading %s of the artifact of %s: %w", view.Inline(path), o.published.Owner, kit.WithoutPath(err))
}

// noFile names the files that may have been meant.
func (o opened) noFile(path string) error {
	h, err := o.list(context.Background())
	if err != nil {
		return err
	}
	if len(h.Files) == 0 {
		return fmt.Errorf("there is no file %s in the artifact of %s: it has no files", view.Inline(path), o.published.Owner)
	}
	names := make([]string, 0, len(h.Files))
	for _, file := range h.Files {
		names = append(names, file.Path)
	}
	return fmt.Errorf("there is no file %s in the artifact of %s; there is: %s", view.Inline(path), o.published.Owner,
		view.Inline(strings.Join(spelling.Nearest(path, names), ", ")))
}

// text is what people read.
func (h held) text(s printer.Style, width int) string {
	var total int64
	for _, file := range h.Files {
		total += file.Size
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Artifact of %s: %s, %s\n", s.Paint(printer.Bold, view.Inline(h.Source)), view.Plural(len(h.Files), "file"), printer.BytesText(total))
	for _, line := range []struct{ name, value string }{{"origin", h.OriginRevision}, {"revision", h.Revision}, {"digest", h.Digest + ", verified"}} {
		if line.value != "" {
			fmt.Fprintf(&out, "  %-9s %s\n", line.name, view.Inline(line.value))
		}
	}
	if h.Folder != "" {
		fmt.Fprintf(&out, "Written to %s.\n", view.Inline(h.Folder))
		return out.String()
	}
	table := printer.Table{Headers: []string{"SIZE", "PATH"}, Width: width}
	for _, file := range h.Files {
		table.Add(printer.BytesText(file.Size), file.Path)
	}
	return out.String() + "\n" + table.Render(s)
}
