// SPDX-License-Identifier: Apache-2.0

package fbc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode"

	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// errNotJSON is the cause of errors about JSON that could be YAML.
var errNotJSON = errors.New("invalid JSON")

// readBlobs emits the blobs of a file: JSON values one after the other, or YAML documents. It returns how many bytes
// were read as JSON before an error.
func readBlobs(file io.Reader, limit int64, emit func([]byte) error) (int64, error) {
	buffered := bufio.NewReaderSize(file, 64<<10)
	start, err := firstCharacter(buffered)
	switch {
	case errors.Is(err, io.EOF):
		return 0, nil
	case err != nil:
		return 0, err
	case start == '{':
		return readJSON(buffered, limit, emit)
	}
	return 0, readYAML(buffered, limit, emit)
}

// firstCharacter looks at the first character that is no white space. It looks no further than the buffer.
func firstCharacter(file *bufio.Reader) (byte, error) {
	window, err := file.Peek(file.Size())
	if len(window) == 0 {
		return 0, err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	text := bytes.TrimLeftFunc(window, unicode.IsSpace)
	if len(text) == 0 {
		return 0, nil
	}
	return text[0], nil
}

// readJSON emits JSON values, which need no separator.
func readJSON(file io.Reader, limit int64, emit func([]byte) error) (int64, error) {
	window := &valueWindow{from: file, limit: limit}
	decoder := json.NewDecoder(window)
	window.decoder = decoder
	for {
		var value json.RawMessage
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if syntax := new(*json.SyntaxError); errors.As(err, syntax) {
			err = fmt.Errorf("%w: %w", errNotJSON, err)
		}
		if err == nil && int64(len(value)) > limit {
			err = tooLarge(limit)
		}
		if err == nil {
			err = emit(value)
		}
		if err != nil {
			return decoder.InputOffset(), err
		}
	}
}

// valueWindow refuses to read on where the decoder would have to hold more than a value of the limit.
type valueWindow struct {
	from    io.Reader
	limit   int64
	decoder *json.Decoder
	read    int64
}

// Read implements io.Reader.
func (w *valueWindow) Read(p []byte) (int, error) {
	if w.read-w.decoder.InputOffset() > w.limit {
		return 0, tooLarge(w.limit)
	}
	n, err := w.from.Read(p)
	w.read += int64(n)
	return n, err
}

// readYAML emits YAML documents as JSON. Empty documents are left out.
func readYAML(file io.Reader, limit int64, emit func([]byte) error) error {
	lines := bufio.NewReaderSize(file, 64<<10)
	for {
		document, err := readDocument(lines, limit)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return err
		}
		blob, err := yaml.YAMLToJSON(document)
		if err == nil && mayHoldMore(document) {
			err = checkSingle(document)
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(blob, []byte("null")) {
			if err := emit(blob); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// errTrailing is about what the library would leave out silently.
var errTrailing = errors.New("something follows the end of the document: write --- alone in a line between two documents")

// mayHoldMore tells whether a document may end before the text does: in braces, or by a marker that is no separator.
// Other documents end with the text, or are none.
func mayHoldMore(document []byte) bool {
	text := bytes.TrimSpace(document)
	return bytes.HasPrefix(text, []byte("{")) || bytes.Contains(document, []byte("\n---")) || bytes.Contains(document, []byte("\n...")) ||
		bytes.HasPrefix(text, separator)
}

// checkSingle refuses a text with several documents.
func checkSingle(document []byte) error {
	decoder := goyaml.NewDecoder(bytes.NewReader(document))
	var node goyaml.Node
	if err := decoder.Decode(&node); err != nil {
		return err
	}
	switch err := decoder.Decode(&node); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errTrailing
}

// separator begins a line between two documents; after it, only a comment is possible.
var separator = []byte("---")

// readDocument reads up to the next separator. The error is io.EOF with the last document.
func readDocument(lines *bufio.Reader, limit int64) ([]byte, error) {
	var document []byte
	atStart := true
	for {
		part, err := lines.ReadSlice('\n')
		if atStart && isSeparator(part) && !errors.Is(err, bufio.ErrBufferFull) {
			if len(bytes.TrimSpace(document)) > 0 || err != nil {
				return document, err
			}
			document = document[:0]
			continue
		}
		document = append(document, part...)
		if int64(len(document)) > limit {
			return nil, tooLarge(limit)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return document, err
		}
		atStart = err == nil
	}
}

func isSeparator(line []byte) bool {
	after, found := bytes.CutPrefix(line, separator)
	after = bytes.TrimSpace(after)
	return found && (len(after) == 0 || after[0] == '#')
}

func tooLarge(limit int64) error { return &LimitError{What: "bytes of one blob", Most: limit} }
