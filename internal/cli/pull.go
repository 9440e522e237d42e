// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// pullOptions are the flags of pull.
type pullOptions struct {
	bundleOptions

	output output
}

// pulled is what pull wrote. Its JSON form is what it prints.
type pulled struct {
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	Folder    string `json:"folder"`
	Files     int    `json:"files"`
	SignedBy  string `json:"signedBy,omitempty"`
}

func (a *app) pullCommand() *cobra.Command {
	var o pullOptions
	cmd := &cobra.Command{
		Use:     "pull REF [DIR]",
		GroupID: groupAuthor,
		Short:   "Fetch an image or OCI artifact from a registry into a folder",
		Long: `Fetches the files of an image or artifact as the source controller does, all layers in one tree, within its limits, and
writes them into a new folder; without DIR that is named after the repository. Links are left out, and an archive with
paths outside of it is refused. On failure, no files are left behind.

With --key it has to be signed with that key, as push --sign-key and cosign sign --key do.

` + registryHelp + `

` + exitCodes,
		Example: a.example(`
# Inspect the files of a published bundle
satchel pull quay.io/org/operator-bundle:v1.2.3 ./operator

# Only if it is signed with this key
satchel pull ghcr.io/org/bundle:v1.0.0 --key cosign.pub`),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return usageError(cmd, "pull needs a reference, and at most one folder; got %s", given(args))
			}
			return a.pull(cmd.Context(), o, args)
		},
	}
	cmd.Flags().StringVar(&o.platform, "platform", "", "Platform of the image, as os/arch; without it: linux/amd64, or the only one.")
	cmd.Flags().StringVar(&o.key, "key", "", "Public key that has to have signed it, as cosign generate-key-pair writes it.")
	_ = cmd.MarkFlagFilename("key", "pub", "pem") // it only fails for a flag that does not exist
	registryFlags(cmd, &o.insecure)
	a.outputFlag(cmd, &o.output, outputText, outputJSON, outputYAML, outputName)
	return cmd
}

func (a *app) pull(ctx context.Context, o pullOptions, args []string) error {
	ref, err := imageReference(args[0], o.insecure)
	if err != nil {
		return err
	}
	o.insecure = o.insecure || isLoopback(ref.Context().RegistryStr()) && !speaksTLS(ctx, ref)
	dir := baseName(ref.Context().RepositoryStr())
	if len(args) == 2 {
		dir = args[1]
	}
	if err := isFree(dir); err != nil {
		return err
	}
	p, err := a.pullInto(ctx, o, args[0], ref, dir)
	if err != nil {
		return err
	}
	switch o.output {
	case outputName:
		_, err = fmt.Fprintln(a.streams.Out, p.Reference+"@"+p.Digest)
	case outputJSON, outputYAML:
		err = printValue(a.streams.Out, o.output, p)
	default:
		signed := ""
		if p.SignedBy != "" {
			signed = ", signed by " + inline(p.SignedBy)
		}
		_, err = fmt.Fprintf(a.streams.Out, "Pulled %s, which is %s%s: %s in %s.\n", p.Reference, p.Digest, signed, plural(p.Files, "file"), inline(dir))
	}
	return err
}

// isFree checks that a folder does not exist, or is empty.
func isFree(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if parent := filepath.Dir(filepath.Clean(dir)); !isDir(parent) {
			return fmt.Errorf("there is no folder %s to write into: create it, or name another one", parent)
		}
		return nil
	case err != nil:
		return fmt.Errorf("reading the folder %s: %w", dir, withoutPath(err))
	case len(entries) > 0:
		return fmt.Errorf("the folder %s is not empty: name another one", dir)
	}
	return nil
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// pullInto fetches into a temporary folder beside the wanted one, and renames it in the end.
func (a *app) pullInto(ctx context.Context, o pullOptions, what string, ref name.Reference, dir string) (p pulled, err error) {
	b, err := a.openImageBundle(ctx, what, o.bundleOptions)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	beside, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".satchel-")
	if err != nil {
		return p, fmt.Errorf("writing beside %s: %w", dir, withoutPath(err))
	}
	defer os.RemoveAll(beside) //nolint:errcheck // if that fails, the name of the folder says that it is temporary
	fresh := filepath.Join(beside, "files")
	if err := os.Mkdir(fresh, 0o755); err != nil { //nolint:gosec // the user's own files, as umask has them
		return p, fmt.Errorf("writing beside %s: %w", dir, withoutPath(err))
	}
	count, err := writeOut(ctx, fresh, b.files)
	if err == nil {
		if err = os.Remove(dir); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = os.Rename(fresh, dir)
	}
	if err != nil {
		return p, fmt.Errorf("writing the folder %s: %w", dir, withoutPath(err))
	}
	return pulled{Reference: strings.TrimSuffix(ref.Name(), "@"+b.resolved.Digest), Digest: b.resolved.Digest, Folder: dir, Files: count, SignedBy: b.resolved.VerifiedBy}, nil
}

// writeOut writes a tree that was fetched into an empty folder, with the modes that the user's files have.
func writeOut(ctx context.Context, dir string, files fs.FS) (count int, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case name == ".":
			return nil
		case entry.IsDir():
			return root.Mkdir(name, 0o755)
		}
		count++
		return copyOut(root, files, name)
	})
	return count, fetch.Describe(err, "copying the files")
}

// copyOut writes one file.
func copyOut(root *os.Root, files fs.FS, name string) (err error) {
	from, err := files.Open(name)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read from
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
