// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/cli/bundle"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// served is a catalog that the artifact server serves.
type served struct {
	app    *kit.App
	base   *url.URL
	client *http.Client
	object string // NAMESPACE/NAME
}

func newServed(a *kit.App, config *rest.Config, o *v1alpha1.BundleCatalog) (*served, error) {
	s := &served{app: a, object: o.Namespace + "/" + o.Name}
	if o.Status.URLs == nil {
		return nil, fmt.Errorf("the status of BundleCatalog %s has no URL: reconcile it", s.object)
	}
	var err error
	if s.base, err = url.Parse(o.Status.URLs.Base); err != nil || s.base.Host == "" {
		return nil, fmt.Errorf("the BundleCatalog %s has the URL %.200q, which cannot be read: reconcile it", s.object, o.Status.URLs.Base)
	}
	s.client, err = bundle.ArtifactClient(config, s.base)
	return s, err
}

// packageOf reads a package as those of files are read.
func (s *served) packageOf(ctx context.Context, name string) (contents fbc.Contents, err error) {
	err = s.download(ctx, name, func(folder fs.FS) error {
		contents, err = fbc.ReadPackage(folder, packageFile, name, fbc.DefaultLimits())
		return err
	})
	return contents, err
}

func (s *served) dependenciesOf(ctx context.Context, name string) (p *catalog.Package, problem, err error) {
	err = s.download(ctx, name, func(folder fs.FS) error {
		whole, err := fbc.ReadAll(folder, packageFile, fbc.DefaultLimits())
		p, problem = whole.Packages[name], whole.Unusable[name]
		return err
	})
	return p, problem, err
}

func (s *served) providers(ctx context.Context, kind catalog.Kind) ([]string, error) {
	return s.lines(ctx, "providers", url.Values{"group": {kind.Group}, "version": {kind.Version}, "kind": {kind.Kind}})
}

// download writes the blobs of a package into a file of a temporary folder.
func (s *served) download(ctx context.Context, name string, read func(folder fs.FS) error) (err error) {
	folder, err := os.MkdirTemp("", "satchel-")
	if err != nil {
		return fmt.Errorf("creating a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file, err := os.Create(filepath.Join(folder, packageFile))
	if err != nil {
		return fmt.Errorf("creating a temporary file: %w", err)
	}
	// The blob olm.package has its package as its name.
	for _, query := range []url.Values{{"schema": {catalog.SchemaPackage}, "name": {name}}, {"package": {name}}} {
		if err := s.get(ctx, "metas", query, func(body io.Reader) error {
			_, err := io.Copy(file, body)
			return err
		}); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("writing a temporary file: %w", err)
	}
	return read(os.DirFS(folder))
}

// packageFile is the temporary file with the blobs of a package.
const packageFile = "package.jsonl"

// longestLine bounds a line of the list of packages.
const longestLine = 1 << 20

func (s *served) names(ctx context.Context) ([]string, []error, error) {
	names, err := s.lines(ctx, "packages", nil)
	return names, nil, err
}

// lines reads an answer with a package a line, and returns their names, sorted.
func (s *served) lines(ctx context.Context, endpoint string, query url.Values) (names []string, err error) {
	err = s.get(ctx, endpoint, query, func(body io.Reader) error {
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, longestLine)
		for lines.Scan() {
			var line struct{ Name string }
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				return err
			}
			names = append(names, line.Name)
		}
		return lines.Err()
	})
	slices.Sort(names)
	return names, err
}

// get reads an answer of the server.
func (s *served) get(ctx context.Context, endpoint string, query url.Values, read func(io.Reader) error) error {
	address := s.base.JoinPath("api", "v1", endpoint)
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return fmt.Errorf("preparing a request: %w", err)
	}
	progress := printer.NewProgress(s.app.Streams.ErrOut, "Reading the catalog "+view.Inline(s.object))
	defer progress.Done()
	client := *s.client
	client.Transport = progress.Count(client.Transport)
	response, err := client.Do(request)
	if err != nil {
		return s.failed(ctx, err)
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return bundle.ErrTokensRequired
	case http.StatusNotFound:
		return fmt.Errorf("the server does not have the BundleCatalog %s: see the command status catalog", s.object)
	default:
		return fmt.Errorf("the server of the BundleCatalog %s answers %s", s.object, response.Status)
	}
	body := &io.LimitedReader{R: response.Body, N: fbc.DefaultLimits().Bytes}
	if err := read(body); err != nil {
		return s.failed(ctx, err)
	}
	if body.N == 0 {
		return fmt.Errorf("the answer about the BundleCatalog %s has more than %d bytes", s.object, fbc.DefaultLimits().Bytes)
	}
	return nil
}

// failed says which catalog could not be read.
func (s *served) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	return &bundle.ArtifactError{Err: fmt.Errorf("reading the BundleCatalog %s: %w", s.object, err)}
}
