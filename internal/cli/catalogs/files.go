// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// files are a catalog in files.
type files struct {
	fs.FS
	root  string
	whole *fbc.Whole // read when dependencies are first asked for
}

func openFiles(path string) (*files, error) {
	found, root, err := Open(path)
	return &files{FS: found, root: root}, err
}

// Open returns the files of a catalog in a folder or a file, and the name of that folder or file in them.
func Open(path string) (found fs.FS, root string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", kit.WithoutPath(err)
	}
	folder, root := path, "."
	if !info.IsDir() {
		folder, root = filepath.Dir(path), filepath.Base(path)
	}
	if !fs.ValidPath(root) {
		return nil, "", errors.New("this is no name of a file")
	}
	return os.DirFS(folder), root, nil
}

// openImage downloads the catalog of an image.
func (s *Set) openImage(ctx context.Context, a *kit.App, ref string, o bundle.OpenOptions) (*files, error) {
	b, root, err := bundle.OpenCatalogImage(ctx, a, ref, o)
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, b.Close)
	if _, err := fs.Stat(b.Files, root); err != nil {
		return nil, errors.New("the image has no folder " + root + ", which its label names: it has no catalog")
	}
	return &files{FS: b.Files, root: root}, nil
}

func (f *files) packageOf(_ context.Context, name string) (fbc.Contents, error) {
	return fbc.ReadPackage(f.FS, f.root, name, fbc.DefaultLimits())
}

func (f *files) names(context.Context) ([]string, []error, error) {
	contents, err := fbc.ReadPackage(f.FS, f.root, "", fbc.DefaultLimits())
	return contents.Packages, contents.Problems, err
}

// readWhole reads all packages, once: a search for dependencies asks for many.
func (f *files) readWhole() (*fbc.Whole, error) {
	if f.whole == nil {
		whole, err := fbc.ReadAll(f.FS, f.root, fbc.DefaultLimits())
		if err != nil {
			return nil, err
		}
		f.whole = &whole
	}
	return f.whole, nil
}

func (f *files) dependenciesOf(_ context.Context, name string) (p *catalog.Package, problem, err error) {
	whole, err := f.readWhole()
	if err != nil {
		return nil, nil, err
	}
	return whole.Packages[name], whole.Unusable[name], nil
}

func (f *files) providers(_ context.Context, kind catalog.Kind) ([]string, error) {
	whole, err := f.readWhole()
	if err != nil {
		return nil, err
	}
	return whole.Providers(kind), nil
}
