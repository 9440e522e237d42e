// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/image"
)

// bundle is the files of a bundle that the user named.
type bundle struct {
	files fs.FS
	from  string          // what was read, in words
	dir   string          // on the disk; empty: it was downloaded
	close func() error    // removes what was downloaded
	notes func() []string // what was left out, known after reading

	resolved fetch.Resolved // what an image was
}

// openBundle reads a folder of the disk, or else an image. What exists on the disk wins.
func (a *app) openBundle(ctx context.Context, what string, o bundleOptions) (*bundle, error) {
	info, err := os.Stat(what)
	switch {
	case err == nil && info.IsDir():
		return openFolderBundle(what)
	case err == nil && isArchive(what):
		return nil, fmt.Errorf("%s is an archive: unpack it, and give the folder that holds the bundle", what)
	case err == nil:
		return nil, fmt.Errorf("%s is a file: give the folder that holds the bundle, or an image reference", what)
	case what == "":
		return nil, errors.New("the name of the folder or image is empty")
	case looksLikePath(what):
		return nil, fmt.Errorf("there is no folder %s", what)
	}
	return a.openImageBundle(ctx, what, o)
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

// looksLikePath tells whether a name that does not exist was meant as a path: no image reference begins like that.
func looksLikePath(what string) bool {
	return what == "" || what == "." || what == ".." || filepath.IsAbs(what) || strings.HasPrefix(what, "./") ||
		strings.HasPrefix(what, "../") || strings.HasPrefix(what, "~") || strings.HasSuffix(what, "/")
}

func openFolderBundle(what string) (*bundle, error) {
	files, err := openFolder(what)
	if err != nil {
		return nil, err
	}
	from := "the folder " + folderName(what)
	if ref, err := name.ParseReference(what, name.WeakValidation); err == nil && looksLikeImage(what) {
		from += fmt.Sprintf(" (not the image %s)", ref.Name())
	}
	notes := func() []string {
		var lines []string
		for _, link := range files.links() {
			lines = append(lines, link+" is a symbolic link and left out, as the controllers do")
		}
		return lines
	}
	return &bundle{files: files, from: from, dir: what, close: files.Close, notes: notes}, nil
}

// folderName is the whole path where the given one ends in dots.
func folderName(what string) string {
	if base := filepath.Base(what); base != "." && base != ".." {
		return what
	}
	if whole, err := filepath.Abs(what); err == nil {
		return whole
	}
	return what
}

// looksLikeImage tells whether a name has what those of images have and those of folders rarely: a tag, a digest, a host.
func looksLikeImage(what string) bool {
	host, _, nested := strings.Cut(what, "/")
	return !looksLikePath(what) && (strings.ContainsAny(what, ":@") || nested && strings.Contains(host, "."))
}

// localPolicy is what may be reached from the user's own machine: its own servers too.
func localPolicy(insecure []string) fetch.AddressPolicy {
	return fetch.AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		InsecureHosts: insecure,
	}
}

// openImageBundle downloads an image into a temporary folder, which close removes.
func (a *app) openImageBundle(ctx context.Context, what string, o bundleOptions) (b *bundle, err error) {
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
	tree, resolved, err := a.download(ctx, ref, dir, o)
	if err != nil {
		return nil, &downloadError{what: what, ref: ref, err: err}
	}
	return &bundle{
		files: tree.FS(),
		from:  describeImage(ref, resolved),
		close: func() error { return errors.Join(tree.Close(), os.RemoveAll(dir)) },
		notes: func() []string { return nil },

		resolved: resolved,
	}, nil
}

func describeImage(ref name.Reference, r fetch.Resolved) string {
	text := "the image " + ref.Name()
	if r.Reference == "" {
		return text
	}
	return text + ", which is " + r.Digest
}

// download resolves the image and fetches what it resolved to.
func (a *app) download(ctx context.Context, ref name.Reference, dir string, o bundleOptions) (*fetch.Tree, fetch.Resolved, error) {
	var insecure []string
	if o.insecure {
		insecure = []string{ref.Context().RegistryStr()}
	}
	limits := fetch.DefaultLimits()
	client := localPolicy(insecure).HTTPClient(limits)
	progress := newProgress(a.streams.ErrOut, "Downloading "+ref.Name())
	client.Transport = progress.count(client.Transport)
	defer progress.done()
	options := image.Options{Ref: ref.String(), Platform: o.platform, Insecure: o.insecure, Client: client, Limits: limits}
	if err := a.trust(ctx, o, ref, &options); err != nil {
		return nil, fetch.Resolved{}, err
	}
	fetcher, err := image.New(options)
	if err != nil {
		return nil, fetch.Resolved{}, err
	}
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
