// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/manifests"
	"github.com/satchel-dev/satchel/internal/cli/spelling"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// Help is the part of the help about catalogs.
const Help = `--catalog NAME=PATH reads a file-based catalog (FBC) in a folder or file, and --catalog NAME=IMAGE one in an image, with
the logins of docker login and podman login; neither needs a cluster. --catalog NAME is a BundleCatalog of the namespace,
or of the namespace with shared catalogs. Without --catalog, all BundleCatalogs that the namespace sees are read. To read
them you need permission to list bundlecatalogs, and to get services/proxy of the source controller's Service in its
namespace.`

// Flags are the flags that say which catalogs are read.
type Flags struct {
	values   []string
	shared   string
	system   string
	insecure bool
	policies []string // files of --image-policy
}

// Bind adds the flags to a command.
func (f *Flags) Bind(a *kit.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.values, "catalog", nil, "Catalog as NAME for a BundleCatalog, or NAME=PATH[,priority=N] or NAME=IMAGE[,priority=N]; "+
		"may be repeated. The highest priority wins; it is 0 if it is not given.")
	a.CompleteFlag(cmd, "catalog", a.CompleteNames(kit.Catalogs))
	f.BindShared(cmd)
	bundle.RegistryFlags(cmd, &f.insecure)
	manifests.ImagePolicyFlag(cmd, &f.policies)
}

// BindShared adds the flags about catalogs that all namespaces share.
func (f *Flags) BindShared(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.shared, "shared-catalog-namespace", "", "Namespace with the BundleCatalogs that all namespaces share; without it, that of the source controller's flag.")
	flags.StringVar(&f.system, "system-namespace", kit.SystemNamespace, "Namespace of the controllers.")
}

// Parse checks the values of --catalog.
func (f *Flags) Parse(cmd *cobra.Command) error {
	_, err := parse(f.values)
	if err != nil {
		return kit.UsageError(cmd, "%v", err)
	}
	return nil
}

// Images says how images are fetched.
func (f *Flags) Images() bundle.OpenOptions {
	return bundle.OpenOptions{Insecure: f.insecure, ImagePolicies: f.policies}
}

// Set is the catalogs of a command that are open.
type Set struct {
	catalogs []opened
	close    []func() error
	cluster  *kit.Explorer // nil if no catalog is of the cluster
}

// opened is one catalog.
type opened struct {
	name     string
	where    string // for errors; "" for none
	priority int32
	content
}

// content is where the blobs of a catalog are.
type content interface {
	// packageOf reads one package. The error is about the whole catalog.
	packageOf(ctx context.Context, name string) (fbc.Contents, error)
	// dependenciesOf reads one package with what its bundles require and provide, or says why it cannot be used.
	dependenciesOf(ctx context.Context, name string) (p *catalog.Package, problem, err error)
	// providers are the packages with a bundle that provides a kind, sorted.
	providers(ctx context.Context, kind catalog.Kind) ([]string, error)
	// names are those of all packages, sorted, and problems of the catalog.
	names(ctx context.Context) ([]string, []error, error)
}

// Open opens the catalogs of the flags. The caller closes the set, also with an error.
func (f *Flags) Open(ctx context.Context, a *kit.App) (*Set, error) {
	set := &Set{}
	places, err := parse(f.values)
	if err != nil {
		return set, err
	}
	reader := &clusterReader{app: a, flags: f}
	if len(places) == 0 {
		return set, reader.all(ctx, set)
	}
	return set, f.open(ctx, reader, set, places)
}

// open opens the catalogs of --catalog.
func (f *Flags) open(ctx context.Context, reader *clusterReader, set *Set, places []place) error {
	for _, p := range places {
		var err error
		var c content
		switch {
		case p.path == "":
			err = reader.one(ctx, set, p.name)
			if err != nil {
				return err
			}
			continue
		case p.isImage():
			c, err = set.openImage(ctx, reader.app, p.path, f.Images())
		default:
			c, err = openFiles(p.path)
		}
		if err != nil {
			return fmt.Errorf("catalog %s at %s: %w", p.name, p.path, err)
		}
		set.catalogs = append(set.catalogs, opened{name: p.name, where: p.path, priority: p.priority, content: c})
	}
	return nil
}

// Close removes what was downloaded.
func (s *Set) Close() error {
	var failures []error
	for _, do := range s.close {
		failures = append(failures, do())
	}
	return errors.Join(failures...)
}

// wrap says which catalog an error is about.
func (c opened) wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case c.where == "":
		return fmt.Errorf("catalog %s: %w", c.name, err)
	}
	return fmt.Errorf("catalog %s at %s: %w", c.name, c.where, err)
}

// Loaded is what the catalogs say about a package.
type Loaded struct {
	Catalogs []resolver.Catalog
	Packages []string // names of all packages of all catalogs; of catalogs of the cluster only if none has the package
	Problems []string // blobs that are left out
}

// Load reads the package from all catalogs.
func (s *Set) Load(ctx context.Context, name string) (Loaded, error) {
	var all Loaded
	for _, c := range s.catalogs {
		contents, err := c.packageOf(ctx, name)
		if err != nil {
			return Loaded{}, c.wrap(err)
		}
		all.Catalogs = append(all.Catalogs, resolver.Catalog{Name: c.name, Priority: c.priority, Package: contents.Package, Problem: contents.Problem})
		all.Packages = append(all.Packages, contents.Packages...)
		all.Problems = append(all.Problems, c.problems(contents.Problems)...)
	}
	if err := s.loadNames(ctx, &all); err != nil {
		return Loaded{}, err
	}
	slices.Sort(all.Packages)
	all.Packages = slices.Compact(all.Packages)
	return all, nil
}

// loadNames adds the names of all packages, if no catalog has the package.
func (s *Set) loadNames(ctx context.Context, all *Loaded) error {
	if all.known() {
		return nil
	}
	for _, c := range s.catalogs {
		names, _, err := c.names(ctx)
		if err != nil {
			return c.wrap(err)
		}
		all.Packages = append(all.Packages, names...)
	}
	return nil
}

func (c opened) problems(problems []error) []string {
	var lines []string
	for _, problem := range problems {
		lines = append(lines, fmt.Sprintf("catalog %s: %v", c.name, problem))
	}
	return lines
}

// known tells whether a catalog has the package.
func (l Loaded) known() bool {
	return slices.ContainsFunc(l.Catalogs, func(c resolver.Catalog) bool { return c.Package != nil || c.Problem != nil })
}

// Similar are the names of packages that may have been meant, where no catalog has the package.
func (l Loaded) Similar(name string) []string {
	if l.known() {
		return nil
	}
	if len(l.Packages) == 0 {
		return []string{"the catalogs have no packages"}
	}
	return []string{"similar packages: " + strings.Join(spelling.Nearest(name, l.Packages), ", ")}
}

// Listing is the names of the packages of a catalog.
type Listing struct {
	Catalog  string
	Packages []string
	Problems []string // blobs that are left out
}

// List reads the names of all packages, catalog by catalog.
func (s *Set) List(ctx context.Context) ([]Listing, error) {
	var all []Listing
	for _, c := range s.catalogs {
		names, problems, err := c.names(ctx)
		if err != nil {
			return nil, c.wrap(err)
		}
		all = append(all, Listing{Catalog: c.name, Packages: names, Problems: c.problems(problems)})
	}
	return all, nil
}
