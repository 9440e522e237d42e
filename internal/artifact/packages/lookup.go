// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/satchel-dev/satchel/internal/catalog"
)

const (
	// mostNames bounds the answer with the packages that provide a kind, in bytes.
	mostNames = 64 << 10
	// mostLookups bounds the answers in memory.
	mostLookups = 1000
)

// lookup is a question about a content of a catalog. Its answer cannot change.
type lookup struct {
	catalog Catalog
	kind    catalog.Kind
	name    string
}

// Providers are the packages of a catalog with a bundle that provides a kind, as the server sorts them. An answer is kept in memory
// while the content of the catalog is the same.
func (r *Reader) Providers(ctx context.Context, c Catalog, kind catalog.Kind) ([]string, error) {
	names, err := r.lookUp(lookup{catalog: c, kind: kind}, func(base string) ([]string, error) {
		query := url.Values{"group": {kind.Group}, "version": {kind.Version}, "kind": {kind.Kind}}
		response, err := r.request(ctx, http.MethodGet, base+"/api/v1/providers?"+query.Encode(), "")
		if err != nil {
			return nil, err
		}
		defer response.Body.Close() //nolint:errcheck // only read from
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("the artifact server answered %s", response.Status)
		}
		return receiveNames(response.Body)
	})
	if err != nil {
		return nil, fmt.Errorf("looking up the %s in catalog %s: %w", kind, c, err)
	}
	return names, nil
}

// Has tells whether a catalog has a package. Nothing of the package is transferred.
func (r *Reader) Has(ctx context.Context, c Catalog, name string) (bool, error) {
	names, err := r.lookUp(lookup{catalog: c, name: name}, func(base string) ([]string, error) {
		response, err := r.request(ctx, http.MethodHead, base+leanPath+url.QueryEscape(name), "")
		if err != nil {
			return nil, err
		}
		defer response.Body.Close() //nolint:errcheck // there is none
		switch response.StatusCode {
		case http.StatusOK:
			return []string{name}, nil
		case http.StatusNoContent, http.StatusUnprocessableEntity:
			return nil, nil
		}
		return nil, fmt.Errorf("the artifact server answered %s", response.Status)
	})
	if err != nil {
		return false, fmt.Errorf("looking up package %s in catalog %s: %w", name, c, err)
	}
	return len(names) > 0, nil
}

// lookUp answers from memory, or asks.
func (r *Reader) lookUp(of lookup, ask func(base string) ([]string, error)) ([]string, error) {
	r.mu.Lock()
	names, known := r.lookups[of]
	r.mu.Unlock()
	if known {
		return names, nil
	}
	base, err := r.admit(of.catalog)
	if err != nil {
		return nil, err
	}
	names, err = ask(base)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lookups == nil || len(r.lookups) >= mostLookups {
		r.lookups = map[lookup][]string{}
	}
	r.lookups[of] = names
	return names, nil
}

// receiveNames reads an answer with a package a line.
func receiveNames(body io.Reader) ([]string, error) {
	content, err := io.ReadAll(io.LimitReader(body, mostNames+1))
	if err != nil {
		return nil, fmt.Errorf("receiving the packages: %w", err)
	}
	if len(content) > mostNames {
		return nil, fmt.Errorf("the list of packages has more than %d bytes", mostNames)
	}
	var names []string
	for line := range bytes.Lines(content) {
		var of struct{ Name string }
		if err := json.Unmarshal(line, &of); err != nil || of.Name == "" {
			return nil, errors.New("the list of packages cannot be read")
		}
		names = append(names, of.Name)
	}
	return names, nil
}
