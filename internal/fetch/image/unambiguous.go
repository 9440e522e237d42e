// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// Limits on the JSON documents of registries. They are counted while the document is read token by token: decoded
// into Go values first, 4 MiB of "{}," are hundreds of MiB.
const (
	// maxEntries bounds the entries of any list, such as the images of an index, and the fields of any object.
	maxEntries = 1000
	// maxNesting bounds objects and lists within one another. A manifest has four levels.
	maxNesting = 16
)

// checkDocument refuses a manifest or index that two readers could understand in different ways, or that is larger than
// any real one: fields that are there twice (also in another spelling, since Go's decoder ignores the case of letters:
// "layers" and "Layers"), something after its end, more than 1,000 entries in a list.
func checkDocument(data []byte) error {
	r := documentReader{json.NewDecoder(bytes.NewReader(data))}
	err := r.value(0, true)
	if err == nil {
		if _, end := r.Token(); !errors.Is(end, io.EOF) {
			err = fetch.Errorf(fetch.InvalidContent, "something follows the end of the document")
		}
	}
	if err == nil || fetch.ReasonOf(err) != "" {
		return err
	}
	return fetch.Errorf(fetch.InvalidContent, "it is not valid JSON: %w", err)
}

// documentReader reads one document.
type documentReader struct{ *json.Decoder }

// value reads a value. fold says whether the names of its fields are compared without their case, as in everything that
// is decoded into a struct; keys of annotations are just keys.
func (r documentReader) value(depth int, fold bool) error {
	token, err := r.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return r.object(depth+1, fold)
	case json.Delim('['):
		return r.list(depth+1, fold)
	}
	return nil
}

func (r documentReader) object(depth int, fold bool) error {
	seen := map[string]struct{}{}
	for r.More() {
		token, err := r.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // the decoder accepts nothing else there
		key := name
		if fold {
			key = strings.ToLower(strings.ToUpper(name)) // as encoding/json folds, the long s included
		}
		if _, twice := seen[key]; twice {
			return fetch.Errorf(fetch.InvalidContent, "the field %s is there twice, and readers differ in which one they take", fetch.Quote(name))
		}
		seen[key] = struct{}{}
		if err := tooMany(len(seen), depth); err != nil {
			return err
		}
		if err := r.value(depth, fold && key != "annotations"); err != nil {
			return err
		}
	}
	_, err := r.Token()
	return err
}

func (r documentReader) list(depth int, fold bool) error {
	for n := 1; r.More(); n++ {
		if err := tooMany(n, depth); err != nil {
			return err
		}
		if err := r.value(depth, fold); err != nil {
			return err
		}
	}
	_, err := r.Token()
	return err
}

func tooMany(entries, depth int) error {
	switch {
	case entries > maxEntries:
		return fetch.Errorf(fetch.LimitExceeded, "a list or object in it has more than %d entries", maxEntries)
	case depth > maxNesting:
		return fetch.Errorf(fetch.LimitExceeded, "it is nested more than %d levels deep", maxNesting)
	}
	return nil
}
