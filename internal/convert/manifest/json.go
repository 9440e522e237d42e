// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// keyAt is a key and where it ends.
type keyAt struct {
	key    string
	offset int64
}

// jsonBuilder makes values from JSON tokens, so that depth and duplicate keys are seen, which json.Unmarshal hides.
type jsonBuilder struct {
	decoder  *json.Decoder
	data     []byte
	names    interned
	maxDepth int
	values   *budget
	repeats  *repeats
	within   within
	keys     []keyAt // of the objects that are being read
}

// line is that of an offset.
func (b *jsonBuilder) line(offset int64) int {
	return 1 + bytes.Count(b.data[:offset], []byte("\n"))
}

// next returns the next document, io.EOF after the last.
func (b *jsonBuilder) next() (any, error) {
	token, err := b.decoder.Token()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, jsonSyntax(err, b.decoder)
	}
	return b.value(token, 0)
}

// value returns what begins with token; depth is that of the collection around it.
func (b *jsonBuilder) value(token json.Token, depth int) (any, error) {
	if err := b.values.charge(0); err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if depth++; depth > b.maxDepth {
			return nil, tooDeep(0, b.maxDepth)
		}
		if t == '{' {
			return b.object(depth)
		}
		return b.array(depth)
	case json.Number:
		return jsonNumber(t)
	default:
		return t, nil // string, bool or nil
	}
}

func (b *jsonBuilder) object(depth int) (any, error) {
	out := map[string]any{}
	outer := len(b.keys)
	defer func() { b.keys = b.keys[:outer] }()
	for b.decoder.More() {
		token, err := b.decoder.Token()
		if err != nil {
			return nil, jsonSyntax(err, b.decoder)
		}
		text, _ := token.(string) // the decoder accepts nothing else as a key
		key := b.names.get(text)
		at := keyAt{key, b.decoder.InputOffset()}
		around := b.within
		b.within = within{outer: around.inner, inner: key}
		value, err := b.element(depth)
		b.within = around
		if err != nil {
			return nil, err
		}
		before, double := out[key]
		if out[key] = value; !double {
			b.keys = append(b.keys, at)
			continue
		}
		if err := b.repeats.add(key, same(before, value), b.within, func() (line, first int) { return b.line(at.offset), b.lineOf(key, outer) }); err != nil {
			return nil, err
		}
	}
	return out, b.end()
}

// lineOf is the line of a key of the innermost object, with keys from that position on.
func (b *jsonBuilder) lineOf(key string, outer int) int {
	at := slices.IndexFunc(b.keys[outer:], func(k keyAt) bool { return k.key == key })
	return b.line(b.keys[outer+at].offset)
}

func (b *jsonBuilder) array(depth int) (any, error) {
	around := b.within
	defer func() { b.within = around }()
	b.within = within{}
	out := []any{}
	for b.decoder.More() {
		value, err := b.element(depth)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, b.end()
}

func (b *jsonBuilder) element(depth int) (any, error) {
	token, err := b.decoder.Token()
	if err != nil {
		return nil, jsonSyntax(err, b.decoder)
	}
	return b.value(token, depth)
}

// end consumes the closing bracket.
func (b *jsonBuilder) end() error {
	if _, err := b.decoder.Token(); err != nil {
		return jsonSyntax(err, b.decoder)
	}
	return nil
}

// jsonNumber is what Kubernetes' decoder makes of a number: an int64 where it fits, else a float64.
func jsonNumber(n json.Number) (any, error) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, &fault{rule: RuleValue, message: "a number is too large"}
	}
	return f, nil
}

// jsonSyntax describes a syntax error by its place, without the text around it.
func jsonSyntax(err error, decoder *json.Decoder) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return fmt.Errorf("something unexpected stands near byte %d", decoder.InputOffset())
}
