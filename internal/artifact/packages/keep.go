// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/lean"
)

// header is the first line of a file with an answer. The blobs follow.
type header struct {
	Namespace string `json:"namespace"`
	Catalog   string `json:"catalog"`
	Package   string `json:"package"`
	// Content is the digest of the catalog at the time of the answer.
	Content string `json:"content"`
	// Digest of the blobs, or of the problem; "" if the catalog does not have the package.
	Digest  string `json:"digest,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// keyOf is the name of the file with the answer about a package.
func keyOf(c Catalog, name string) string {
	sum := sha256.Sum256([]byte(c.Namespace + "/" + c.Name + "/" + name))
	return hex.EncodeToString(sum[:])
}

// list reads which answers are on disk. Files that cannot be read are removed.
func (r *Reader) list() error {
	if err := volume.RemoveTemporary(r.root, "."); err != nil {
		return fmt.Errorf("preparing to read catalogs: %w", err)
	}
	entries, err := volume.ListFolder(r.root, ".")
	if err != nil {
		return fmt.Errorf("preparing to read catalogs: %w", err)
	}
	for _, entry := range entries {
		content, err := r.root.ReadFile(entry.Name())
		var of header
		if err == nil {
			of, _, err = split(content)
		}
		if err == nil && keyOf(Catalog{Namespace: of.Namespace, Name: of.Catalog}, of.Package) == entry.Name() {
			r.known[entry.Name()] = of
			continue
		}
		if err := r.root.RemoveAll(entry.Name()); err != nil {
			return fmt.Errorf("removing a damaged answer of a catalog: %w", err)
		}
	}
	return nil
}

func split(content []byte) (header, []byte, error) {
	first, blobs, found := bytes.Cut(content, []byte("\n"))
	var of header
	if !found {
		return of, nil, errors.New("it is cut off")
	}
	return of, blobs, json.Unmarshal(first, &of)
}

// keep stores an answer, and returns it.
func (r *Reader) keep(of header, blobs []byte) (Found, error) {
	found, err := parse(of, blobs)
	if err != nil {
		return Found{}, err
	}
	return found, r.store(of, blobs)
}

func (r *Reader) store(of header, blobs []byte) error {
	first, err := json.Marshal(of)
	if err != nil {
		return fmt.Errorf("keeping a package: %w", err)
	}
	key := keyOf(Catalog{Namespace: of.Namespace, Name: of.Catalog}, of.Package)
	content := append(append(first, '\n'), blobs...)
	if err := volume.WriteDurably(volume.OSFileSystem{}, r.root, key, content); err != nil {
		return fmt.Errorf("keeping a package: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[key] = of
	return nil
}

// confirm notes that an answer holds for a newer content of the catalog.
func (r *Reader) confirm(key string, was header, content string) (Found, error) {
	file, err := r.root.ReadFile(key)
	if err != nil {
		return Found{}, fmt.Errorf("reading a kept package: %w", err)
	}
	_, blobs, err := split(file)
	if err != nil {
		return Found{}, fmt.Errorf("reading a kept package: %w", err)
	}
	was.Content = content
	return r.keep(was, blobs)
}

// load reads an answer from disk.
func (r *Reader) load(key string, of header) (Found, error) {
	file, err := r.root.ReadFile(key)
	if err != nil {
		return Found{}, fmt.Errorf("reading a kept package: %w", err)
	}
	_, blobs, err := split(file)
	if err != nil {
		return Found{}, fmt.Errorf("reading a kept package: %w", err)
	}
	return parse(of, blobs)
}

// parse reads the blobs of an answer, after it compared them with their digest.
func parse(of header, blobs []byte) (Found, error) {
	switch {
	case of.Problem != "":
		return Found{Digest: of.Digest, Problem: errors.New(of.Problem)}, nil
	case of.Digest == "":
		return Found{}, nil
	case digestOf(blobs) != of.Digest:
		return Found{}, errors.New("the kept package is damaged")
	case len(blobs) == 0: // blobs of other schemas only
		return Found{Package: &catalog.Package{Name: of.Package}, Digest: of.Digest}, nil
	}
	builder := lean.NewBuilder(of.Package, lean.DefaultLimits())
	number := 0
	for line := range bytes.Lines(blobs) {
		number++
		var blob struct{ Schema string }
		if err := json.Unmarshal(line, &blob); err != nil {
			return Found{}, fmt.Errorf("line %d of the package: %w", number, err)
		}
		builder.Add(lean.Blob{Path: of.Package, Number: number, Schema: blob.Schema, Package: of.Package, JSON: line})
	}
	parsed, err := builder.Package()
	if err != nil {
		return Found{Digest: of.Digest, Problem: err}, nil
	}
	return Found{Package: parsed, Digest: of.Digest}, nil
}
