// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// maxValue bounds one value of an index in JSON, and the entry of one version.
const maxValue = 2 << 20

// ahead is the input of a decoder that keeps at most maxValue bytes that it has not made a value of.
type ahead struct {
	from    io.Reader
	decoder *json.Decoder
	read    int64
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	if a.read-a.decoder.InputOffset() > maxValue {
		return 0, fetch.Errorf(fetch.LimitExceeded, "one of its values has more than %d bytes", maxValue)
	}
	n, err := a.from.Read(p[:min(len(p), maxValue)])
	a.read += int64(n)
	return n, err
}

// readJSON reads an index in JSON until the entries of the chart have ended.
func readJSON(from io.Reader, c *chooser) error {
	input := &ahead{from: from}
	input.decoder = json.NewDecoder(input)
	found, err := topJSON(input.decoder, c)
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.Is(err, errDone):
		return nil
	case errors.As(err, &syntax), errors.As(err, &mistyped), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fetch.Errorf(fetch.InvalidContent, "it is not valid JSON at byte %d", input.decoder.InputOffset())
	case err != nil:
		return err
	case !found:
		return fetch.Errorf(fetch.InvalidContent, "it is not the index of a Helm repository: it has no entries")
	}
	return nil
}

// topJSON reads the fields of an index, and tells whether it has entries.
func topJSON(d *json.Decoder, c *chooser) (found bool, err error) {
	err = eachKey(d, func(key string) error {
		if key != "entries" {
			return skip(d)
		}
		found = true
		return eachKey(d, func(chart string) error {
			if !c.begin(chart) {
				return skip(d)
			}
			if err := entriesJSON(d, c); err != nil {
				return err
			}
			return errDone
		})
	})
	return found, err
}

// entriesJSON reads the entries of the chart.
func entriesJSON(d *json.Decoder, c *chooser) error {
	opened, err := opens(d, '[')
	if err != nil || !opened {
		return err
	}
	for d.More() {
		var read *struct {
			Name    string   `json:"name"`
			Version string   `json:"version"`
			Digest  string   `json:"digest"`
			URLs    []string `json:"urls"`
		}
		if err := d.Decode(&read); err != nil {
			return err
		}
		if read == nil {
			if err := c.look(entry{empty: true}); err != nil {
				return err
			}
			continue
		}
		if len(read.URLs) > maxURLs {
			return fetch.Errorf(fetch.LimitExceeded, "a version has more than %d URLs", maxURLs)
		}
		if err := c.look(entry{name: read.Name, version: read.Version, digest: read.Digest, urls: read.URLs}); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// eachKey calls take for each key of an object, which has to read the value. Null has no keys.
func eachKey(d *json.Decoder, take func(key string) error) error {
	opened, err := opens(d, '{')
	if err != nil || !opened {
		return err
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // the decoder refuses any other
		if err := take(key); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// opens tells whether the next value is an object or a list; false for null.
func opens(d *json.Decoder, with json.Delim) (bool, error) {
	token, err := d.Token()
	if err != nil || token == nil {
		return false, err
	}
	if token != with {
		return false, fetch.Errorf(fetch.InvalidContent, "at byte %d: %v was expected", d.InputOffset(), with)
	}
	return true, nil
}

// skip reads one value.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
