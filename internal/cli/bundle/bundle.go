// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/internal/fetch/image"
	"github.com/satchel-dev/satchel/internal/fetch/links"
)

// Bundle is the files of a bundle that the user named.
type Bundle struct {
	Files fs.FS
	From  string          // what was read, in words
	dir   string          // on the disk; empty: it was downloaded
	Close func() error    // removes what was downloaded
	Notes func() []string // what was left out, known after reading

	Resolved fetch.Resolved // what an image was
}

// OpenBundle reads a folder of the disk, or else an image. What exists on the disk wins. With a Helm repository it reads a chart of
// that.
func OpenBundle(ctx context.Context, a *kit.App, what string, o OpenOptions) (*Bundle, error) {
	if err := o.CheckRepository(); err != nil {
		return nil, err
	}
	if o.HelmRepository != "" {
		return openChart(ctx, a, what, o)
	}
	info, err := os.Stat(what)
	switch {
	case err == nil && info.IsDir():
		return OpenFolderBundle(what)
	case err == nil && isArchive(what):
		return nil, fmt.Errorf("%s is an archive: unpack it, and give the folder that holds the bundle", what)
	case err == nil:
		return nil, fmt.Errorf("%s is a file: give the folder that holds the bundle, or an image reference", what)
	case what == "":
		return nil, errors.New("the name of the folder or image is empty")
	case kit.LooksLikePath(what):
		return nil, fmt.Errorf("there is no folder %s", what)
	}
	return OpenImageBundle(ctx, a, what, o)
}

// isArchive tells by its name whether a file may hold a bundle.
func isArchive(file string) bool {
	for _, end := range []string{".tar", ".tgz", ".gz", ".zst", ".zip"} {
		if strings.HasSuffix(strings.ToLower(file), end) {
			return true
		}
	}
	return false
}

// OpenFolderBundle opens a bundle in a folder or an archive.
func OpenFolderBundle(what string) (*Bundle, error) {
	files, err := OpenFolder(what)
	if err != nil {
		return nil, err
	}
	from := "the folder " + FolderName(what)
	if ref, err := name.ParseReference(what, name.WeakValidation); err == nil && kit.LooksLikeImage(what) {
		from += fmt.Sprintf(" (not the image %s)", ref.Name())
	}
	notes := func() []string {
		var lines []string
		for _, link := range files.Links() {
			lines = append(lines, link+" is a symbolic link and left out, as the controllers do")
		}
		return lines
	}
	return &Bundle{Files: files, From: from, dir: what, Close: files.Close, Notes: notes}, nil
}

// FolderName is the whole path where the given one ends in dots.
func FolderName(what string) string {
	if base := filepath.Base(what); base != "." && base != ".." {
		return what
	}
	if whole, err := filepath.Abs(what); err == nil {
		return whole
	}
	return what
}

// LocalPolicy is what may be reached from the user's own machine: its own servers too.
func LocalPolicy(insecure []string) guard.AddressPolicy {
	return guard.AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		InsecureHosts: insecure,
	}
}

// OpenImageBundle downloads an image into a temporary folder, which close removes.
func OpenImageBundle(ctx context.Context, a *kit.App, what string, o OpenOptions) (b *Bundle, err error) {
	ref, err := name.ParseReference(what, name.WeakValidation)
	if err != nil {
		return nil, fmt.Errorf("%q is neither a folder that exists nor an image reference such as quay.io/org/bundle:v1.2.3", what)
	}
	dir, err := os.MkdirTemp("", "satchel-")
	if err != nil {
		return nil, fmt.Errorf("creating a temporary folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	tree, resolved, err := download(ctx, a, ref, dir, o)
	if err != nil {
		return nil, &DownloadError{What: what, Ref: ref, Err: err}
	}
	return &Bundle{
		Files: tree.FS(),
		From:  describeImage(ref, resolved),
		Close: func() error { return errors.Join(tree.Close(), os.RemoveAll(dir)) },
		Notes: links.Notes(tree.FS()),

		Resolved: resolved,
	}, nil
}

// OpenCatalogImage downloads the file-based catalog of an image, and nothing else of it, as the source controller does. root is
// where it is in the files.
func OpenCatalogImage(ctx context.Context, a *kit.App, what string, o OpenOptions) (b *Bundle, root string, err error) {
	only := &image.Only{Label: catalog.ConfigsLabel}
	o.only = only
	b, err = OpenImageBundle(ctx, a, what, o)
	if err != nil {
		return nil, "", err
	}
	return b, only.Found, nil
}

func describeImage(ref name.Reference, r fetch.Resolved) string {
	text := "the image " + ref.Name()
	if r.Reference == "" {
		return text
	}
	return text + ", which is " + r.Digest
}

// download resolves the image and fetches what it resolved to.
func download(ctx context.Context, a *kit.App, ref name.Reference, dir string, o OpenOptions) (*fetch.Tree, fetch.Resolved, error) {
	progress := printer.NewProgress(a.Streams.ErrOut, "Downloading "+ref.Name())
	defer progress.Done()
	fetcher, err := fetcherOf(ctx, a, ref, o, progress)
	if err != nil {
		return nil, fetch.Resolved{}, err
	}
	return fetchInto(ctx, fetcher, dir, fetch.DefaultLimits())
}

// fetcherOf is the fetcher of an image, from the places that --image-policy permits. progress counts what is read; nil for none.
func fetcherOf(ctx context.Context, a *kit.App, ref name.Reference, o OpenOptions, progress *printer.Progress) (*image.Fetcher, error) {
	decision, err := decide(ctx, ref, o)
	if err != nil {
		return nil, err
	}
	plain := o.Insecure || !decision.MirrorsOnly && speaksPlainHTTP(ctx, ref)
	options := image.Options{Ref: ref.String(), Platform: o.Platform, Insecure: plain, Client: clientFor(ref.Context(), plain), Limits: fetch.DefaultLimits(), Only: o.only}
	if err := Trust(ctx, a, o, ref, &options); err != nil {
		return nil, err
	}
	if err := mirror(ctx, a, ref, o, decision, &options); err != nil {
		return nil, err
	}
	if progress != nil {
		options.Client.Transport = progress.Count(options.Client.Transport)
		for _, m := range options.Mirrors {
			m.Client.Transport = progress.Count(m.Client.Transport)
		}
	}
	return image.New(options)
}

// clientFor reaches a repository.
func clientFor(repository name.Repository, plain bool) *http.Client {
	var insecure []string
	if plain {
		insecure = []string{repository.RegistryStr()}
	}
	return LocalPolicy(insecure).HTTPClient(fetch.DefaultLimits())
}

// fetchInto fetches what a reference resolves to into a new tree in dir.
func fetchInto(ctx context.Context, fetcher fetch.Fetcher, dir string, limits fetch.Limits) (*fetch.Tree, fetch.Resolved, error) {
	resolved, err := fetcher.Resolve(ctx)
	if err != nil {
		return nil, fetch.Resolved{}, err
	}
	tree, err := fetch.NewTree(dir, limits)
	if err != nil {
		return nil, fetch.Resolved{}, err
	}
	if resolved, err = fetcher.Fetch(ctx, resolved, tree); err != nil {
		return nil, fetch.Resolved{}, errors.Join(err, tree.Close())
	}
	return tree, resolved, nil
}
