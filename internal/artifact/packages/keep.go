// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/satchel-dev/satchel/internal/artifact/volume"
	"github.com/satchel-dev/satchel/internal/catalog"
	"github.com/satchel-dev/satchel/internal/catalog/lean"
	"github.com/satchel-dev/satchel/internal/format"
)

// header is the first line of a file with an answer. The parsed package follows.
type header struct {
	Namespace string `json:"namespace"`
	Catalog   string `json:"catalog"`
	Package   string `json:"package"`
	// Content is the digest of the catalog at the time of the answer.
	Content string `json:"content"`
	// Digest of the blobs, or of the problem; "" if the catalog does not have the package.
	Digest  string `json:"digest,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Parsed is the digest of what follows; "" if nothing does.
	Parsed string `json:"parsed,omitempty"`
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

// split divides a file with an answer into the header and the parsed package.
func split(content []byte) (header, []byte, error) {
	var of header
	content, err := format.Package.Cut(content)
	if err != nil {
		return of, nil, err
	}
	first, encoded, found := bytes.Cut(content, []byte("\n"))
	if !found {
		return of, nil, errors.New("it is cut off")
	}
	if err := json.Unmarshal(first, &of); err != nil {
		return of, nil, err
	}
	if (of.Parsed != "") != (of.Digest != "" && of.Problem == "") || of.Parsed != "" && digest.FromBytes(encoded).String() != of.Parsed {
		return of, nil, errors.New("it is damaged")
	}
	return of, encoded, nil
}

// keep stores an answer, and returns it.
func (r *Reader) keep(of header, parsed lean.Parsed) (Found, error) {
	if of.Parsed = ""; len(parsed.Package) > 0 {
		of.Parsed = digest.FromBytes(parsed.Package).String()
	}
	found, err := r.found(of, parsed.Package)
	if err != nil {
		return Found{}, err
	}
	return found, r.store(of, parsed.Package)
}

func (r *Reader) store(of header, encoded []byte) error {
	first, err := json.Marshal(of)
	if err != nil {
		return fmt.Errorf("keeping a package: %w", err)
	}
	key := keyOf(Catalog{Namespace: of.Namespace, Name: of.Catalog}, of.Package)
	content := append(append(format.Package.Prepend(first), '\n'), encoded...)
	if err := volume.WriteDurably(volume.OSFileSystem{}, r.root, key, content); err != nil {
		return fmt.Errorf("keeping a package: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[key] = of
	return nil
}

// confirm notes that an answer holds for a newer content of the catalog.
func (r *Reader) confirm(key, content string) (Found, error) {
	of, encoded, err := r.open(key)
	if err != nil {
		return Found{}, err
	}
	of.Content = content
	return r.keep(of, lean.Parsed{Package: encoded})
}

// load reads an answer from disk, or from memory if it is there.
func (r *Reader) load(key string, was header) (Found, error) {
	if parsed := r.decoded.get(was.Parsed); parsed != nil {
		return Found{Package: parsed, Digest: was.Digest}, nil
	}
	of, encoded, err := r.open(key)
	if err != nil {
		return Found{}, err
	}
	return r.found(of, encoded)
}

func (r *Reader) open(key string) (header, []byte, error) {
	file, err := r.root.ReadFile(key)
	if err != nil {
		return header{}, nil, fmt.Errorf("reading a kept package: %w", err)
	}
	of, encoded, err := split(file)
	if err != nil {
		return header{}, nil, fmt.Errorf("reading a kept package: %w", err)
	}
	return of, encoded, nil
}

// found decodes an answer, and keeps it in memory.
func (r *Reader) found(of header, encoded []byte) (Found, error) {
	switch {
	case of.Problem != "":
		return Found{Digest: of.Digest, Problem: errors.New(of.Problem)}, nil
	case of.Digest == "":
		return Found{}, nil
	}
	if parsed := r.decoded.get(of.Parsed); parsed != nil {
		return Found{Package: parsed, Digest: of.Digest}, nil
	}
	parsed := &catalog.Package{}
	if err := json.Unmarshal(encoded, parsed); err != nil {
		return Found{}, fmt.Errorf("decoding the package: %w", err)
	}
	r.decoded.put(of.Parsed, parsed, len(encoded))
	return Found{Package: parsed, Digest: of.Digest}, nil
}
